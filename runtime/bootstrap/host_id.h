// What tells this machine from others.
#pragma once

#include <string>

namespace tern {

/// Boot id + host name: two containers with names of their own count as two machines, because they need not
/// share memory; a machine that restarted counts as another.
std::string host_id_of_this_machine();

}  // namespace tern
