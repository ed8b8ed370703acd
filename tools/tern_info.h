// `tern info`: settings, algorithms, codecs, transports and the build, from their registries.
#pragma once

#include "runtime/bootstrap/world.h"
#include "tools/report.h"

namespace tern::tools {

/// world: asked which transports can be used in this process, and holds the settings as they are now.
Report info_report(const World& world);

}  // namespace tern::tools
