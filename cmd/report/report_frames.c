/* report_frames.c: prints the frames of a call stack. */
#include "cmd/report/report_print.h"

void report_print_frames(struct page *page, const char *label, const int column[2],
                         const struct frame *frame, int count)
{
    char function[sizeof frame->function + 32], place[sizeof frame->file];
    int widest = 0, most = (page->width - column[1]) / 2;
    for (int i = 0; i < count; i++) {
        int width = text_width(frame_function(&frame[i], function, sizeof function));
        widest = width > widest ? width : widest;
    }
    int places = column[1] + (widest < most ? widest : most) + 2;
    for (int i = 0; i < count; i++) {
        page_line(page);
        page_column(page, column[0]);
        page_text(page, STYLE_FAINT, i == 0 ? label : "");
        page_column(page, column[1]);
        page_text(page, i == 0 ? STYLE_STRONG : STYLE_PLAIN,
                  frame_function(&frame[i], function, sizeof function));
        int begin = page->column + 2 > places ? page->column + 2 : places;
        if (!*frame_place(&frame[i], page->width - begin, place, sizeof place))
            continue;
        page_column(page, begin);
        page_text(page, STYLE_PLAIN, place);
    }
}
