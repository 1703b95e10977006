/* lanes.cuh: several neighbouring elements of an array at once, in registers: read by one
 * instruction of 16 bytes where the array begins at such a boundary, else one by one.
 *
 *     const lanes<const float, 4> in(x + i);    reads x[i] .. x[i + 3]
 *     lanes<float, 4> out(y + i);               refers to y[i] .. y[i + 3], writes them at its end
 *
 * What is overwritten before it is used costs no read: the compiler leaves it out. */
#ifndef DDPCHECK_KERNELS_LANES_CUH
#define DDPCHECK_KERNELS_LANES_CUH

#include <cstdint>
#include <cuda_runtime.h>

enum { LANES = 4 }; /* that a thread takes at a time */

template <typename T> struct lane_vector;
template <> struct lane_vector<float> {
    typedef float4 type;
};

template <typename T> static __device__ inline bool lanes_are_aligned(const T *home)
{
    return reinterpret_cast<uintptr_t>(home) % (LANES * sizeof(T)) == 0;
}

template <typename T> static __device__ inline void lanes_read(const T *home, T (&value)[LANES])
{
    if (lanes_are_aligned(home)) {
        const typename lane_vector<T>::type all =
            *reinterpret_cast<const typename lane_vector<T>::type *>(home);
        value[0] = all.x, value[1] = all.y, value[2] = all.z, value[3] = all.w;
    } else {
        for (int i = 0; i < LANES; i++)
            value[i] = home[i];
    }
}

template <typename T> static __device__ inline void lanes_write(T *home, const T (&value)[LANES])
{
    if (lanes_are_aligned(home)) {
        const typename lane_vector<T>::type all = {value[0], value[1], value[2], value[3]};
        *reinterpret_cast<typename lane_vector<T>::type *>(home) = all;
    } else {
        for (int i = 0; i < LANES; i++)
            home[i] = value[i];
    }
}

template <typename T> static __device__ inline void lanes_read(const T *home, T (&value)[1])
{
    value[0] = *home;
}

template <typename T> static __device__ inline void lanes_write(T *home, const T (&value)[1])
{
    *home = value[0];
}

template <typename T, int WIDTH> struct lanes {
    T *home;
    T value[WIDTH];

    __device__ explicit lanes(T *home_) : home(home_)
    {
        lanes_read(home, value);
    }
    __device__ ~lanes()
    {
        lanes_write(home, value);
    }
    lanes(const lanes &) = delete;
    __device__ T &operator[](int i)
    {
        return value[i];
    }
};

template <typename T, int WIDTH> struct lanes<const T, WIDTH> {
    T value[WIDTH];

    __device__ explicit lanes(const T *home)
    {
        lanes_read(home, value);
    }
    __device__ T operator[](int i) const
    {
        return value[i];
    }
};

#endif
