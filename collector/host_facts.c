/* host_facts.c: reads what the host of a process is.
 *
 * Sources: proc(5); sysfs-class-net, sysfs-class-infiniband and sysfs-class-iommu in the kernel's
 * Documentation/ABI; the NVIDIA driver's README, "The /proc/driver/nvidia interface". */
#include "collector/host_facts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/dormant.h"
#include "lib/base/process_file.h"
#include "lib/base/text.h"

/* RECORDS_MOST: two strings of several records and a notice, of each fact. */
enum { LINE_BYTES = 512, FILE_BYTES = 8192, RECORDS_MOST = 256, VALUE_BYTES = 512 };

struct facts {
    struct collector *collector;
    int process;
    const struct process_info *info;
};

static void add_fact(const struct facts *facts, const char *name, const char *value)
{
    char text[VALUE_BYTES];
    uint64_t time_ns = facts->info->monotonic_ns;
    if (!value || !*value)
        return;
    snprintf(text, sizeof text, "%s", value);
    struct record record = {.time_ns = time_ns,
                            .api = API_notice_setting,
                            .device = RECORD_NO_DEVICE,
                            .range = {.text = string_id(text, strlen(text)),
                                      .domain = string_id(name, strlen(name)),
                                      .id = SETTING_HOST}};
    if (dormant_add_text(facts->collector, facts->process, name, record.range.domain, time_ns) &&
        dormant_add_text(facts->collector, facts->process, text, record.range.text, time_ns))
        batch_add(facts->collector->batch, facts->process, &record);
}

/* The value of the line that begins so, without the blanks before it: "Model: NVIDIA H100". */
static bool read_field(const char *path, const char *begin, char value[LINE_BYTES])
{
    char line[LINE_BYTES];
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, begin, strlen(begin)) != 0)
            continue;
        const char *at = line + strlen(begin) + strspn(line + strlen(begin), " \t:");
        snprintf(value, LINE_BYTES, "%.*s", (int)strcspn(at, "\n"), at);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

/* The names in a directory of /sys or /proc, each as `add` writes it; the caller frees the text. */
static char *list_directory_entries(const char *path,
                                    void (*add)(struct text *text, const char *name))
{
    struct text text = {0};
    struct dirent **entry = NULL;
    int count = scandir(path, &entry, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entry[i]->d_name[0] != '.')
            add(&text, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return text_take(&text);
}

/* Each model once: how many a host has may differ. */
static void add_gpu(struct text *text, const char *name)
{
    char path[LINE_BYTES], model[LINE_BYTES];
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%.64s/information", name);
    if (read_field(path, "Model", model) && !(text->len && strstr(text->data, model)))
        text_add(text, "%s%s", text->len ? ", " : "", model);
}

static void add_network(struct text *text, const char *name)
{
    char path[LINE_BYTES], mtu[LINE_BYTES], state[LINE_BYTES];
    snprintf(path, sizeof path, "/sys/class/net/%.64s/operstate", name);
    if (!read_field(path, "", state) || strcmp(state, "up") != 0)
        return;
    snprintf(path, sizeof path, "/sys/class/net/%.64s/mtu", name);
    if (read_field(path, "", mtu))
        text_add(text, "%s%s MTU %s", text->len ? ", " : "", name, mtu);
}

static void add_device_name(struct text *text, const char *name)
{
    text_add(text, "%s%s", text->len ? ", " : "", name);
}

static void add_list(const struct facts *facts, const char *fact, const char *path,
                     void (*add)(struct text *text, const char *name))
{
    char *list = list_directory_entries(path, add);
    add_fact(facts, fact, list);
    free(list);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.35.03  Fri Aug 16 ...". */
static void add_driver(const struct facts *facts)
{
    char line[LINE_BYTES], version[64];
    if (!read_field("/proc/driver/nvidia/version", "NVRM version", line))
        return;
    for (const char *at = line; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (sscanf(at, "%63[0-9.]", version) == 1 && strchr(version, '.')) {
            add_fact(facts, "driver", version);
            return;
        }
}

static void add_limit(const struct facts *facts, const char *fact, const char *line)
{
    char text[FILE_BYTES], soft[64], hard[64];
    if (process_start_ticks(facts->info->pid) != facts->info->start_ticks)
        return; /* it is gone, or in another pid namespace */
    process_file_read(facts->info->pid, "limits", text, sizeof text);
    const char *at = strstr(text, line);
    if (at && sscanf(at + strlen(line), "%63s %63s", soft, hard) == 2) {
        snprintf(text, sizeof text, "%s of %s", soft, hard);
        add_fact(facts, fact, text);
    }
}

static const char *find_container(void)
{
    static const struct {
        const char *file, *name;
    } signs[] = {{"/run/.containerenv", "podman"},
                 {"/.dockerenv", "docker"},
                 {"/.singularity.d", "apptainer"},
                 {"/var/run/secrets/kubernetes.io", "kubernetes"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (access(signs[i].file, F_OK) == 0)
            return signs[i].name;
    return NULL;
}

void host_facts_add(struct collector *collector, int process, const struct process_info *info)
{
    const struct facts facts = {collector, process, info};
    struct utsname system;
    char line[LINE_BYTES];
    if (batch_room(collector->batch) < RECORDS_MOST)
        return;
    if (uname(&system) == 0) {
        add_fact(&facts, "kernel", system.release);
        add_fact(&facts, "architecture", system.machine);
    }
    if (read_field("/proc/cpuinfo", "vendor_id", line) ||
        read_field("/proc/cpuinfo", "CPU implementer", line))
        add_fact(&facts, "CPU vendor", line);
    if (read_field("/sys/devices/system/node/online", "", line))
        add_fact(&facts, "NUMA nodes", line);
    add_driver(&facts);
    add_list(&facts, "GPUs", "/proc/driver/nvidia/gpus", add_gpu);
    add_list(&facts, "network", "/sys/class/net", add_network);
    add_list(&facts, "RDMA devices", "/sys/class/infiniband", add_device_name);
    add_list(&facts, "IOMMU", "/sys/class/iommu", add_device_name);
    add_fact(&facts, "container", find_container());
    add_limit(&facts, "open files", "Max open files");
    add_limit(&facts, "locked memory", "Max locked memory");
}
