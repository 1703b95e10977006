// Two ranks of a C++ program: the last one leaves out an AllReduce, and goes on to wait for what it
// computes. The call lies below a template, a lambda and the C++ library's own frames.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace training
{

struct Shared {
    std::atomic<bool> ready;
    ncclUniqueId id;
};

struct Options {
    std::map<std::string, std::vector<std::string>> values;
};

template <class Element, class Settings> class Trainer
{
  public:
    Trainer(ncclComm_t comm, Element *gradients) : comm_(comm), gradients_(gradients)
    {
    }

    void step(const Settings &, int number)
    {
        std::vector<std::function<void(int)>> hooks = {[this](int) { average(); }}; // mark: lambda
        for (auto &hook : hooks)
            hook(number); // mark: hook
    }

  private:
    // What NCCL and CUDA were called by goes through std::function: its frames are the innermost
    // ones in this program.
    void average()
    {
        std::function<ncclResult_t()> call = std::bind(ncclAllReduce, gradients_, gradients_,
                                                       size_t{1000}, ncclFloat, ncclSum, comm_,
                                                       nullptr);
        call(); // mark: average
        std::function<cudaError_t()> wait = std::bind(cudaStreamSynchronize, nullptr);
        wait(); // mark: wait
    }

    ncclComm_t comm_;
    Element *gradients_;
};

// Ends the communicator also where an exception leaves the scope.
struct Ending {
    ncclComm_t comm;
    ~Ending()
    {
        ncclCommDestroy(comm);
    }
};

void run_rank(Shared *shared, int rank, int ranks)
{
    ncclComm_t comm;
    void *memory;
    if (rank == 0) {
        ncclGetUniqueId(&shared->id);
        shared->ready = true;
    }
    while (!shared->ready)
        usleep(1000);
    cudaSetDevice(rank);
    ncclCommInitRank(&comm, ranks, shared->id, rank);
    Ending ending{comm};
    cudaMalloc(&memory, 4000);
    cudaMemset(memory, 0, 4000);
    cudaDeviceSynchronize();
    Trainer<float, Options> trainer(comm, static_cast<float *>(memory));
    for (int number = 0; number < 3; number++)
        trainer.step(Options(), number);
    if (rank == ranks - 1 && std::getenv("JOB_THROWS"))
        throw std::runtime_error("no batch"); // mark: throw
    if (rank == ranks - 1 && !std::getenv("JOB_TWIN"))
        pause();                // mark: pause
    trainer.step(Options(), 3); // mark: last step
}

} // namespace training

int main()
{
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *shared = new (page) training::Shared();
    for (int rank = 0; rank < 2; rank++)
        if (fork() == 0) {
            setenv("RANK", rank ? "1" : "0", 1);
            setenv("WORLD_SIZE", "2", 1);
            if (const char *throws = std::getenv("JOB_THROWS"); throws && throws[0] == '2')
                training::run_rank(shared, rank, 2); // nobody catches: std::terminate
            try {
                training::run_rank(shared, rank, 2); // mark: main
            } catch (const std::exception &) {
                pause(); // as MPI_Finalize waits for the others
            }
            return 0;
        }
    int status, worst = 0;
    while (wait(&status) > 0)
        worst = status ? 1 : worst;
    return worst;
}
