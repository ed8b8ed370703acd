# The last lines of a configure run: what was found and what this build does without.
function(tern_summary_line what found version without)
  if(found)
    set(text "${version}")
  else()
    set(text "not found: ${without}")
  endif()
  string(LENGTH "${what}" length)
  math(EXPR padding "11 - ${length}")
  string(REPEAT " " ${padding} spaces)
  message(STATUS "  ${what}${spaces}${text}")
endfunction()

message(STATUS "Tern ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
  "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_SYSTEM_PROCESSOR}")
if(TERN_SANITIZE)
  message(STATUS "  sanitizers ${TERN_SANITIZE}")
endif()
tern_summary_line(CUDA "${TERN_CUDA_FOUND}"
  "${CUDAToolkit_VERSION}, kernels for ${CMAKE_CUDA_ARCHITECTURES} (the runtime computes on the host)"
  "built without, ${TERN_CUDA_WHY_NOT}")
tern_summary_line(UCX "${ucx_FOUND}" "${ucx_VERSION}" "built without, no transport between machines")
tern_summary_line("Open MPI" "${ompi_FOUND}" "${ompi_VERSION}" "built without, start with torchrun or srun")
tern_summary_line(oneDNN "${DNNL_LIBRARY}" "${DNNL_LIBRARY}" "")
tern_summary_line(Highway "${hwy_FOUND}" "${hwy_VERSION}" "")
tern_summary_line(hwloc "${hwloc_FOUND}" "${hwloc_VERSION}" "")
tern_summary_line(libsodium "${sodium_FOUND}" "${sodium_VERSION}" "")
tern_summary_line(xxHash "${xxhash_FOUND}" "${xxhash_VERSION}" "")
tern_summary_line(GoogleTest "${GTest_FOUND}" "${GTest_VERSION}" "built without tests")
