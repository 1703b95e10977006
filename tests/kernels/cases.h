/* cases.h: the groups of checks that test_kernels.c runs; each prints and counts its failures
 * (values.h). */
#ifndef DDPCHECK_TESTS_KERNELS_CASES_H
#define DDPCHECK_TESTS_KERNELS_CASES_H

void case_conv2d(void);
void case_transposed(void);
void case_activated(void);
void case_math(void);
void case_linear(void);
void case_batch_norm(void);
void case_activations(void);
void case_losses(void);
void case_optimisers(void);
void case_elementwise(void);
void case_casts(void);
void case_payload(void);
void case_streams(void);
void case_refused(void);

#endif
