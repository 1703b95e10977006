/* hub_view.c: readers elsewhere follow the job's database: they get the pages that changed. */
#include <assert.h>
#include <string.h>

#include "hub/hub_internal.h"
#include "lib/base/clock.h"
#include "lib/trace/image.h"

static_assert((int)ITEM_PAGE_BYTES == (int)IMAGE_PAGE_BYTES, "a page is an item of a message");

/* Readers of a large database do not keep the hub from its work. */
static const uint64_t image_every_ns = 500000000;
enum { VIEW_ROOM = 2 * ITEM_PAGE_BYTES }; /* left in a message for its last item */

/* Within one pass of a reader over the pages they should not change. Returns false if there is
 * nothing that can be sent. */
static bool renew_image(struct hub *hub, const struct item_view *view, bool *is_too_large)
{
    struct error err;
    bool is_due = view->page == 1 && hub->now_ns - hub->image_ns >= image_every_ns;
    *is_too_large = false;
    if (!hub->image && image_open(&hub->image, hub->database, &err) < 0)
        return false;
    if (!hub->image_id)
        hub->image_id = realtime_now_ns(); /* another hub on the folder has a later one */
    if (!is_due && image_version(hub->image))
        return true;
    hub->image_ns = hub->now_ns;
    int result = image_take(hub->image, ITEM_PAGES_MAX, &err);
    *is_too_large = result == 1;
    return result >= 0;
}

static void write_view(struct hub *hub, const struct item_view *view, bool is_too_large)
{
    const uint64_t since = view->image == hub->image_id ? view->version : 0;
    struct item_image end = {.image = hub->image_id,
                             .version = image_version(hub->image),
                             .pages = is_too_large ? 0 : image_pages(hub->image)};
    struct item_page item = {0};
    const unsigned char *page;
    message_clear(&hub->writer);
    for (uint32_t from = view->page;
         end.pages && (page = image_changed(hub->image, since, from, &item.page));
         from = item.page + 1) {
        if (hub->writer.bytes + VIEW_ROOM > TRANSPORT_BYTES_MAX) {
            end.next = item.page;
            break;
        }
        memcpy(item.data, page, sizeof item.data);
        message_add(&hub->writer, ITEM_PAGE, &item);
    }
    message_add(&hub->writer, ITEM_IMAGE, &end);
}

void hub_take_view(struct hub *hub, const struct transport_message *message)
{
    struct message_reader reader;
    struct message_item item;
    struct error err;
    bool is_too_large;
    if (message_open(&reader, message->data, message->bytes, &err) < 0 ||
        message_next(&reader, &item, &err) != 1 || item.kind != ITEM_VIEW) {
        hub->counts.refused++;
        return;
    }
    hub->counts.views++;
    if (!renew_image(hub, &item.view, &is_too_large))
        return; /* the reader asks again */
    write_view(hub, &item.view, is_too_large);
    transport_reply(hub->options.transport, message->id, hub->writer.data, hub->writer.bytes, NULL);
    message_clear(&hub->writer);
}
