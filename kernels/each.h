/* each.h: applies a macro to each parenthesised argument: EACH(F, (int, a), (float, b)) is F(int,
 * a) F(float, b). Up to nine arguments. */
#ifndef DDPCHECK_KERNELS_EACH_H
#define DDPCHECK_KERNELS_EACH_H

#define EACH(F, ...)                                                                              \
    EACH_NTH(__VA_ARGS__, EACH_9, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, EACH_1, \
             0)                                                                                   \
    (F, __VA_ARGS__)
#define EACH_NTH(a, b, c, d, e, f, g, h, i, nth, ...) nth
#define EACH_1(F, first)                              F first
#define EACH_2(F, first, ...)                         F first EACH_1(F, __VA_ARGS__)
#define EACH_3(F, first, ...)                         F first EACH_2(F, __VA_ARGS__)
#define EACH_4(F, first, ...)                         F first EACH_3(F, __VA_ARGS__)
#define EACH_5(F, first, ...)                         F first EACH_4(F, __VA_ARGS__)
#define EACH_6(F, first, ...)                         F first EACH_5(F, __VA_ARGS__)
#define EACH_7(F, first, ...)                         F first EACH_6(F, __VA_ARGS__)
#define EACH_8(F, first, ...)                         F first EACH_7(F, __VA_ARGS__)
#define EACH_9(F, first, ...)                         F first EACH_8(F, __VA_ARGS__)

#endif
