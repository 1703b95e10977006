/* Which frames of a stack say where the program stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lib/finding/finding_fix.h"
#include "lib/trace/site.h"
#include "lib/trace/site_operation.h"

static struct frame python(const char *function, const char *file)
{
    struct frame frame = {.line = 7};
    snprintf(frame.function, sizeof frame.function, "%s", function);
    snprintf(frame.file, sizeof frame.file, "%s", file);
    return frame;
}

static struct frame native(const char *function, const char *module)
{
    struct frame frame = {.address = 0x7f0000001000};
    snprintf(frame.function, sizeof frame.function, "%s", function);
    snprintf(frame.module, sizeof frame.module, "%s", module);
    return frame;
}

/* "step train run" for the functions of the frames that are left. */
static void assert_left(struct frame *frames, int count, const char *expected)
{
    char left[512] = "";
    count = site_own_frames(frames, count);
    for (int i = 0; i < count; i++)
        snprintf(left + strlen(left), sizeof left - strlen(left), "%s%s", i ? " " : "",
                 frames[i].function);
    assert_string_equal(left, expected);
}

static void test_program_of_c(void **state)
{
    (void)state;
    struct frame frames[] = {
        native("poll", "/lib/libc.so.6"),
        native("cuStreamSynchronize", "/usr/lib/libcuda.so.1"),
        native("ncclAllReduce", "/opt/libddpcheck.so"),
        native("reduce", "/opt/train"),
        native("main", "/opt/train"),
        native("__libc_start_main", "/lib/libc.so.6"),
        native("_start", "/opt/train"),
    };
    assert_left(frames, 7, "reduce main");
}

static void test_call_of_mpi(void **state)
{
    (void)state;
    char called[64];
    struct frame frames[] = {
        native("epoll_wait", "/lib/libc.so.6"),
        native("opal_progress", "/usr/lib/libopen-pal.so.40"),
        native("ompi_coll_base_barrier", "/usr/lib/libmpi.so.40"),
        native("PMPI_Barrier", "/usr/lib/libmpi.so.40"),
        native("save", "/opt/train"),
        native("main", "/opt/train"),
    };
    assert_string_equal(site_called(frames, 6, called, sizeof called), "MPI_Barrier");
    assert_left(frames, 6, "save main");
    struct frame ends[] = {
        native("usleep", "/lib/libc.so.6"),
        native("ompi_mpi_finalize", "/usr/lib/libmpi.so.40"),
        native("main", "/opt/train"),
    };
    assert_string_equal(site_called(ends, 3, called, sizeof called), "MPI_Finalize");
    assert_left(ends, 3, "main");
}

/* With ddpcheck's wrapper in the stack, what stands below it counts, whatever library that is in. */
static void test_inside_nccl(void **state)
{
    (void)state;
    char inside[64];
    struct frame frames[] = {
        native("clock_nanosleep", "/lib/libc.so.6"),
        native("ncclLocalOpAppend", "/opt/libpatched.so"),
        native("pncclAllGather", "/usr/lib/libnccl.so.2"),
        native("ncclAllGather", "/usr/lib/libddpcheck.so"),
        native("gather", "/opt/train"),
    };
    assert_string_equal(site_inside_nccl(frames, 5, inside, sizeof inside), "ncclLocalOpAppend()");
    assert_string_equal(site_inside_nccl(frames + 2, 3, inside, sizeof inside), "");
    struct frame unwatched[] = {
        native("bootstrapAllGather", "/usr/lib/libnccl.so.2"),
        native("ncclCommInitRank", "/usr/lib/libnccl.so.2"),
        native("main", "/opt/train"),
    };
    assert_string_equal(site_inside_nccl(unwatched, 3, inside, sizeof inside),
                        "bootstrapAllGather()");
}

static void expect_called(const char *symbol, const char *module, const char *expected)
{
    char called[64];
    struct frame frames[] = {native(symbol, module), native("main", "/opt/train")};
    assert_string_equal(site_called(frames, 2, called, sizeof called), expected);
}

static void test_names_of_calls(void **state)
{
    (void)state;
    expect_called("__poll@@GLIBC_2.2.5", "/lib/libc.so.6", "poll");
    expect_called("pncclGroupEnd", "/usr/lib/libnccl.so.2", "ncclGroupEnd");
    expect_called("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
                  "/usr/lib/libstdc++.so.6", "std::condition_variable::wait");
}

/* NVTX is headers: a mark's first frame is in one, unless the compiler put it into its caller. */
static void test_mark_of_nvtx(void **state)
{
    (void)state;
    struct frame frames[] = {native("nvtxMarkA", "/opt/train"), native("mark_used", "/opt/train"),
                             native("main", "/opt/train")};
    strcpy(frames[0].file, "/usr/local/cuda/include/nvtx3/nvtxDetail/nvtxImplCore.h");
    strcpy(frames[1].file, "/src/train.c");
    struct frame alone[] = {frames[0]};
    assert_left(frames, 3, "mark_used main");
    assert_left(alone, 1, "nvtxMarkA");              /* better than nothing */
    assert_int_equal(site_user_frame(alone, 1), -1); /* but no line of the program */
    strcpy(alone[0].file, "/opt/include/ddpcheck/ddpcheck.h");
    assert_int_equal(site_user_frame(alone, 1), -1);
}

/* nvcc's stubs, and the function that has the kernel's name, are not where it is launched. */
static void test_kernel_of_nvcc(void **state)
{
    (void)state;
    struct frame frames[] = {native("cudaLaunchKernel", "/opt/libddpcheck.so"),
                             native("_Z27__device_stub__Z3sgdPfPKfifPfPKfif", "/opt/train"),
                             native("_Z3sgdPfPKfif", "/opt/train"), native("main", "/opt/train")};
    assert_left(frames, 4, "main");
    struct frame template[] = {native("_ZL28__device_stub__Z4fillIfEvPT_Pf", "/opt/train"),
                               native("_ZL28__wrapper__device_stub_fillIfEvRPT_", "/opt/train"),
                               native("_Z4fillIfEvPT_", "/opt/train"),
                               native("step", "/opt/train")};
    assert_left(template, 4, "step");
    struct frame of_clang[] = {native("_Z18__device_stub__sgdPf", "/opt/train"),
                               native("step", "/opt/train")};
    assert_left(of_clang, 2, "step");
}

/* Function templates of the C++ library that are compiled into the program. */
static void test_header_of_cxx(void **state)
{
    (void)state;
    struct frame frames[] = {native("operator()", "/opt/train"),
                             native("__invoke_impl<void, main()::<lambda()>&>", "/opt/train"),
                             native("main", "/opt/train")};
    strcpy(frames[1].file, "/usr/include/c++/12/bits/invoke.h");
    assert_left(frames, 3, "operator() main");
}

static void test_only_libraries(void **state)
{
    (void)state;
    struct frame frames[] = {native("poll", "/lib/libc.so.6"),
                             native("worker", "/usr/lib/libcuda.so.1")};
    assert_left(frames, 2, "poll worker");
}

static void test_program_in_python(void **state)
{
    (void)state;
    struct frame frames[] = {
        python("all_reduce",
               "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"),
        python("wrapper", "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py"),
        python("step", "/home/me/train.py"),
        python("_call_impl", "/v/lib/python3.11/site-packages/torch/nn/modules/module.py"),
        python("forward", "/v/lib/python3.11/site-packages/megatron/model.py"),
        python("run", "/usr/lib/python3.11/threading.py"),
        python("_run_code", "<frozen runpy>"),
        native("c10d::allreduce", "/v/torch/lib/libtorch_cuda.so"),
        native("_PyEval_EvalFrameDefault", "/usr/lib/libpython3.11.so.1.0"),
        native("extension", "/home/me/fast.so"),
        native("select_poll",
               "/usr/lib/python3.11/lib-dynload/select.cpython-311-x86_64-linux-gnu.so"),
    };
    assert_left(frames, 11, "step forward run extension");
}

/* Of a thread that is nobody's but the framework's (a loader's, a watchdog's) its frames are what
 * there is. */
static void test_only_framework(void **state)
{
    (void)state;
    struct frame frames[] = {
        python("_recv", "/v/lib/python3.11/site-packages/torch/multiprocessing/reductions.py"),
        python("_pin_memory_loop",
               "/v/lib/python3.11/site-packages/torch/utils/data/_utils/pin_memory.py"),
        native("_PyEval_EvalFrameDefault", "/usr/bin/python3.11"),
    };
    assert_left(frames, 3, "_recv _pin_memory_loop");
}

static void test_own_copy_of_a_name(void **state)
{
    (void)state;
    struct frame frames[] = {
        python("step", "/home/me/lib/python3.11/site-packages/mine/torch_train.py"),
        python("<module>", "/home/me/pytorch/examples/train.py")};
    assert_left(frames, 2, "step <module>");
}

static struct frame source(const char *function, const char *file)
{
    struct frame frame = native(function, "/opt/train");
    frame.line = 7;
    snprintf(frame.file, sizeof frame.file, "%s", file);
    return frame;
}

/* What is shown of a stack is the line that a person would change: not the function that wraps the
 * call for the whole program. */
static void test_user_frame(void **state)
{
    (void)state;
    const struct frame wrapped[] = {source("communicator_barrier", "/s/communicator.c"),
                                    source("meet_in_barrier", "/s/train.c"),
                                    source("train_one_rank", "/s/main.c")};
    const struct frame one_file[] = {source("all_reduce_losses", "/s/train.c"),
                                     source("step", "/s/train.c"), source("main", "/s/train.c")};
    const struct frame all_wrappers[] = {source("send_token", "/s/ring.c"),
                                         source("barrier_all", "/s/ring.c"),
                                         source("main", "/s/ring.c")};
    const struct frame script[] = {python("all_reduce_mean", "/me/train.py"),
                                   python("<module>", "/me/train.py")};
    const struct frame own_code[] = {source("loss_read", "/s/loss.c"),
                                     source("step", "/s/train.c")};
    const struct frame below_main[] = {source("send_token", "/s/ring.c"),
                                       source("main", "/s/main.c")};
    const struct frame python_package[] = {
        python("all_reduce", "/v/site-packages/apex/parallel.py"),
        python("sync_loss", "/me/dist_utils.py"), python("epoch", "/me/train.py")};
    struct frame cython[] = {python("Communicator.reduce", "/v/site-packages/nccl/core.py"),
                             python("<module>", "/me/train.py"),
                             native("__pyx_f_reduce", "/v/site-packages/nccl/bindings.so")};
    snprintf(cython[2].file, sizeof cython[2].file, "/project/nccl/bindings.cpp");
    assert_int_equal(site_user_frame(cython, 3), 1);
    const struct frame nameless[] = {native("f", "/opt/train"), native("g", "/opt/train")};
    assert_int_equal(site_user_frame(wrapped, 3), 2);
    assert_int_equal(site_user_frame(one_file, 3), 1);
    assert_int_equal(site_user_frame(all_wrappers, 3), 2);
    assert_int_equal(site_user_frame(script, 2), 1);
    assert_int_equal(site_user_frame(own_code, 2), 0);
    assert_int_equal(site_user_frame(below_main, 2), 0);
    assert_int_equal(site_user_frame(python_package, 3), 2);
    assert_int_equal(site_user_frame(nameless, 2), -1);
    assert_int_equal(site_shown_frame(nameless, 2), 0);
    assert_int_equal(site_shown_frame(nameless, 0), -1);
}

static struct frame at_line(const char *function, int line)
{
    struct frame frame = source(function, "/s/train.c");
    frame.line = line;
    return frame;
}

/* Two ranks in one line of a helper: the line at which their ways there part. */
static void test_frame_beside(void **state)
{
    (void)state;
    const struct frame loss[] = {at_line("reduce", 8), at_line("log_loss", 20),
                                 at_line("main", 40)};
    const struct frame gradients[] = {at_line("reduce", 8), at_line("main", 41)};
    const struct frame other[] = {at_line("gather", 12), at_line("main", 41)};
    struct frame in_package[] = {at_line("reduce", 8), at_line("hook", 9), at_line("main", 40)};
    snprintf(in_package[1].file, sizeof in_package[1].file, "/v/site-packages/apex/hooks.c");
    assert_int_equal(site_frame_beside(loss, 3, gradients, 2), 2);
    assert_int_equal(site_frame_beside(gradients, 2, loss, 3), 1);
    assert_int_equal(site_frame_beside(loss, 3, loss, 3), 0);
    assert_int_equal(site_frame_beside(loss, 3, other, 2), 0);
    assert_int_equal(site_frame_beside(loss, 3, in_package, 3), 1);
    assert_int_equal(site_frame_beside(in_package, 3, loss, 3), 0); /* nobody changes a package */
    assert_int_equal(site_frame_beside(NULL, 0, loss, 3), -1);
}

#define assert_user_frame(frames, expected) \
    assert_int_equal(site_user_frame(frames, (int)(sizeof(frames) / sizeof *(frames))), expected)

/* Templates that launch kernels, buffers of a header and Thrust's loops serve all their callers:
 * the line to change is the caller's. A program whose code is in headers keeps its own lines. */
static void test_helpers_in_headers(void **state)
{
    (void)state;
    const struct frame launch[] = {source("_Z6launchIJPfmEE9cudaErrorPFvDpT_E", "/s/launch.cuh"),
                                   source("_Z15launch_elementsIJfEEvm", "/s/launch.cuh"),
                                   source("kernel_scale", "/s/cuda/scale.cu"),
                                   source("average_bucket", "/s/reducer.c"),
                                   source("main", "/s/main.c")};
    const struct frame buffer[] = {source("_ZN6Buffer4fillEf", "/s/buffer.hpp"),
                                   source("_ZN6Tensor5zero_Ev", "/s/tensor.h"),
                                   source("clear_gradients", "/s/optimizer.cpp")};
    const struct frame below_main[] = {source("_Z6launchIfEvT_", "/s/launch.cuh"),
                                       source("main", "/s/train.cu")};
    const struct frame in_headers[] = {source("_Z10all_reduceIfEvT_", "/s/comm.hpp"),
                                       source("_ZN7TrainerIfE4stepEv", "/s/trainer.hpp"),
                                       source("_ZN7TrainerIfE3runEv", "/s/trainer.hpp"),
                                       source("main", "/s/main.cpp")};
    const struct frame one_header[] = {in_headers[1], in_headers[2], in_headers[3]};
    const struct frame header_alone[] = {in_headers[1], in_headers[2]};
    struct frame toolkit[] = {
        source("transform<int>", "/usr/local/cuda/targets/x86_64-linux/include/cub/device.cuh"),
        source("for_each<int>", "/opt/venv/include/thrust/for_each.h"),
        source("clear_gradients", "/s/optimizer.cu")};
    assert_user_frame(launch, 3);
    assert_user_frame(buffer, 2);
    assert_user_frame(below_main, 1);
    assert_user_frame(in_headers, 1);
    assert_user_frame(one_header, 0);
    assert_user_frame(header_alone, 0);
    assert_left(toolkit, 3, "clear_gradients");
}

/* Of a program in C++: not what std::function is made of, and demangled names decide what a wrapper
 * is, not their namespace. Where only a few frames have room, the user's is among them. */
static void test_program_of_cxx(void **state)
{
    (void)state;
    struct frame frames[] = {
        native("_ZNKSt8functionIFviEEclEi", "/opt/train"),
        native("_ZNSt6thread4joinEv", "/lib/libstdc++.so.6"),
        source("_ZN4nccl7Trainer4stepEv", "/s/trainer.cpp"),
        source("main", "/s/main.cpp"),
    };
    const struct frame deep[] = {native("f", "/opt/a.so"), native("g", "/opt/a.so"),
                                 source("_ZN4nccl7Trainer4stepEv", "/s/trainer.cpp"),
                                 source("main", "/s/main.cpp")};
    char name[64];
    assert_left(frames, 4, "_ZN4nccl7Trainer4stepEv main");
    assert_int_equal(site_user_frame(frames, 2), 0);
    assert_string_equal(frame_function(&frames[0], name, sizeof name), "nccl::Trainer::step()");
    assert_int_equal(site_first_frame(deep, 4, 2), 2);
    assert_int_equal(site_first_frame(deep, 4, 3), 0);
}

#define TORCH "/v/site-packages/torch/"
#define assert_call_made_by(frames, call, words)                                                   \
    do {                                                                                           \
        char made_by[SITE_OPERATION_BYTES];                                                        \
        assert_string_equal(site_operation(frames, (int)(sizeof(frames) / sizeof *(frames)), call, \
                                           made_by, sizeof made_by),                               \
                            words);                                                                \
    } while (0)
#define assert_made_by(frames, words) assert_call_made_by(frames, NULL, words)

/* The operation of PyTorch that a call of NCCL belongs to; its own name does not show it. */
static void test_operations_of_pytorch(void **state)
{
    (void)state;
    const struct frame bucket[] = {
        python("backward", TORCH "_tensor.py"), python("step", "/me/train.py"),
        native("ncclAllReduce", "/l/libnccl.so.2"),
        native("_ZN4c10d7Reducer18all_reduce_bucketERNS0_6BucketE", "/l/libtorch_cpu.so")};
    const struct frame agreement[] = {
        python("step", "/me/train.py"),
        native("_ZN4c10d7Reducer19sync_bucket_indicesERSt6vectorImSaImEE", "/l/libtorch_cpu.so"),
        native("_ZN4c10d7Reducer15rebuild_bucketsEv", "/l/libtorch_cpu.so")};
    const struct frame object[] = {
        python("all_gather", TORCH "distributed/distributed_c10d.py"),
        python("wrapper", TORCH "distributed/c10d_logger.py"),
        python("all_gather_object", TORCH "distributed/distributed_c10d.py"),
        python("wrapper", TORCH "distributed/c10d_logger.py"), python("barrier", "/me/train.py")};
    const struct frame gather[] = {
        python("foreach_all_gather", TORCH "distributed/fsdp/_fully_shard/_fsdp_collectives.py"),
        python("__call__", TORCH "nn/modules/module.py"), python("step", "/me/train.py")};
    const struct frame pieces[] = {python("all_gather", TORCH "distributed/distributed_c10d.py"),
                                   python("wrapper", TORCH "distributed/c10d_logger.py"),
                                   python("step", "/me/train.py")};
    const struct frame statistics[] = {
        python("all_gather_into_tensor", TORCH "distributed/distributed_c10d.py"),
        python("SyncBatchNorm.forward", TORCH "nn/modules/_functions.py"),
        python("SyncBatchNorm.forward", TORCH "nn/modules/batchnorm.py"),
        python("step", "/me/train.py")};
    const struct frame sharded[] = {
        python("FlatParamHandle._all_gather_flat_param", TORCH "distributed/fsdp/_flat_param.py"),
        python("step", "/me/train.py")};
    const struct frame forward[] = {python("all_reduce", TORCH "distributed/distributed_c10d.py"),
                                    python("Net.forward", "/me/model.py")};
    const struct frame plain_call[] = {
        python("all_reduce", TORCH "distributed/distributed_c10d.py"),
        python("wrapper", TORCH "distributed/c10d_logger.py"), python("step", "/me/train.py")};
    const struct frame own[] = {python("barrier", "/me/train.py"),
                                native("ncclAllReduce", "/l/libnccl.so.2")};
    assert_made_by(bucket, "gradient bucket of DDP");
    assert_made_by(agreement, "DDP's agreement on its buckets");
    assert_made_by(object, "all_gather_object()");
    assert_made_by(gather, "FSDP's all-gather of parameters");
    assert_made_by(statistics, "SyncBatchNorm's statistics");
    assert_made_by(sharded, "FSDP's all-gather of parameters");
    assert_made_by(forward, "");
    assert_made_by(plain_call, "");
    assert_call_made_by(pieces, "ncclAllGather(count=3, float32)", "");
    assert_call_made_by(pieces, "ncclBroadcast(count=3, float32, root=2)", "all_gather()");
    assert_call_made_by(pieces, "exited with status 0", "");
    assert_made_by(own, "");
}

static void test_place_of_a_build_folder(void **state)
{
    (void)state;
    char place[256];
    struct frame frame = source("step", "/s/build/dev/../../trainer/./train.c");
    assert_string_equal(frame_place(&frame, 60, place, sizeof place), "/s/trainer/train.c:7");
}

/* Two calls of one line are told apart by the lines that led to them; what is not known tells
 * nothing. */
static void test_lines_that_part(void **state)
{
    (void)state;
    struct frame call[] = {source("reduce", "/s/nccl.c"), source("step", "/s/train.c"),
                           source("main", "/s/main.c")};
    struct frame other[] = {source("reduce", "/s/nccl.c"), source("step", "/s/train.c"),
                            source("main", "/s/main.c")};
    assert_false(fix_lines_part(call, 3, other, 3));
    assert_false(fix_lines_part(call, 3, other, 1));
    assert_false(fix_lines_part(call, 0, other, 3));
    other[1].line++;
    assert_true(fix_lines_part(call, 3, other, 3));
    call[0].line = 0;
    assert_false(fix_lines_part(call, 3, other, 3));
    call[0] = source("reduce", "/s/other.c");
    assert_true(fix_lines_part(call, 3, other, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_of_nvcc),     cmocka_unit_test(test_header_of_cxx),
        cmocka_unit_test(test_program_of_c),       cmocka_unit_test(test_call_of_mpi),
        cmocka_unit_test(test_inside_nccl),        cmocka_unit_test(test_names_of_calls),
        cmocka_unit_test(test_mark_of_nvtx),       cmocka_unit_test(test_only_libraries),
        cmocka_unit_test(test_program_in_python),  cmocka_unit_test(test_only_framework),
        cmocka_unit_test(test_own_copy_of_a_name), cmocka_unit_test(test_user_frame),
        cmocka_unit_test(test_frame_beside),       cmocka_unit_test(test_helpers_in_headers),
        cmocka_unit_test(test_program_of_cxx),     cmocka_unit_test(test_operations_of_pytorch),
        cmocka_unit_test(test_lines_that_part),    cmocka_unit_test(test_place_of_a_build_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
