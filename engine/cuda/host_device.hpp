// For functions that both sides of the bus compile: where something lies has one definition.
#pragma once

#ifdef __CUDACC__
#define KESTREL_HOST_DEVICE __host__ __device__
#else
#define KESTREL_HOST_DEVICE
#endif
