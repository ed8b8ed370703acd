// Everything a program needs: settings, errors, element types, the world and the communicator.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/config.h"
#include "runtime/base/dtype.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/bootstrap/world.h"
#include "runtime/codec/codec.h"
#include "runtime/communicator/communicator.h"
#include "runtime/communicator/work.h"
