// The CUDA engine through its C interface, as tests open it.
#pragma once

#include "tests/engine/engine_under_test.hpp"

namespace kestrel::test {

inline const kestrel_engine_api& cuda_api() {
    static const kestrel_engine_api& api = load_engine(setting("KESTREL_CUDA_LIB", KESTREL_CUDA_LIB));
    return api;
}
inline const kestrel_engine_api& cuda_baseline_api() {
    static const kestrel_engine_api& api = load_engine(setting("KESTREL_CUDA_LIB_BASELINE", KESTREL_CUDA_LIB_BASELINE));
    return api;
}

struct CudaArgs : Args {
    CudaArgs(const std::string& which, const std::string& gdn, const std::string& launch_mode) : Args(which, gdn), launch(launch_mode) {
        list.push_back({"KESTREL_LAUNCH", launch.c_str()});
        args.switches = list.data();
        args.switch_count = list.size();
    }
    std::string launch;
};

}  // namespace kestrel::test
