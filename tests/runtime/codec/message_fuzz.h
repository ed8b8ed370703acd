// What a fuzzer calls with bytes that a stranger could have sent.
#pragma once

#include <cstddef>
#include <cstdint>

/// libFuzzer's entry point: checks the bytes as a message of a codec, type and count that their beginning
/// chooses, and decodes them as the payload of a message whose header is right. Ends the process when a
/// decoder writes outside of its output. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes);
