#!/bin/bash
# install_test.sh BUILD_DIR WORK_DIR LIBDIR COMPILER
# Fails unless both ways of using the installed package work.
set -euo pipefail
build=$1 work=$2 libdir=$3 compiler=$4
here=$(cd "$(dirname "$0")" && pwd)
prefix=$work/prefix
sanitize=$(sed -n 's/^TERN_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build/CMakeCache.txt")

rm -rf "$prefix" "$work/consumer"
cmake --install "$build" --component development --prefix "$prefix" >/dev/null

cmake -S "$here/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$sanitize" >/dev/null
cmake --build "$work/consumer" >/dev/null
"$work/consumer/consumer"

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
flags=$(pkg-config --cflags --libs tern)
# shellcheck disable=SC2086  # the flags are words
"$compiler" -std=c++20 $sanitize "$here/consumer/main.cpp" -o "$work/consumer/by_pkg_config" $flags
"$work/consumer/by_pkg_config"

# Two ranks of it, as torchrun would start them.
port=$((20000 + RANDOM % 20000))
for rank in 0 1; do
  RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$work/consumer/consumer" &
  ranks[rank]=$!
done
wait "${ranks[0]}"
wait "${ranks[1]}"
