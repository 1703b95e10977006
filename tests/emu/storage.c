/* storage.c: a library with more thread-local storage than ld.so keeps free under LD_AUDIT. */
static __thread char storage[8192] __attribute__((tls_model("initial-exec")));

char *storage_get(void);
char *storage_get(void)
{
    return storage;
}
