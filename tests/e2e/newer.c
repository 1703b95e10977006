/* newer.c: a library that a program was built with (NEWER) and that of the machine where it runs,
 * which lacks the function. */
int newer_has(void);
int both_have(void);

int both_have(void)
{
    return 0;
}

#ifdef NEWER
int newer_has(void)
{
    return 0;
}
#endif
