/* json_tree.c: reads a JSON file as most programs do, into a tree: the yardstick of the streaming
 * reader (lib/import). */
#include <jansson.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *tree = argc == 2 ? json_load_file(argv[1], 0, &error) : NULL;
    if (!tree) {
        fprintf(stderr, "json_tree: %s\n", argc == 2 ? error.text : "one file, please");
        return 1;
    }
    printf("%zu\n", json_array_size(json_object_get(tree, "traceEvents")));
    json_decref(tree);
    return 0;
}
