#pragma once
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>

// Macros that Swift's importer drops, since they cast or name other macros.
static const int64_t cav_AV_NOPTS_VALUE = AV_NOPTS_VALUE;
static const int cav_AVERROR_EOF = AVERROR_EOF;
static inline int cav_AVERROR(int error) { return AVERROR(error); }
static inline int cav_is_again(int code) { return code == AVERROR(EAGAIN); }

// A callback can't be given a va_list from Swift: the line is made here and handed on as text.
typedef void (*cav_log_sink)(int level, const char *line);
// Inside a function, since the importer emits no variable of a header by itself.
static inline cav_log_sink *cav_current_log_sink(void) {
    static cav_log_sink sink;
    return &sink;
}
static inline void cav_log_line(void *source, int level, const char *format, va_list arguments) {
    if (level > AV_LOG_WARNING || !*cav_current_log_sink()) return;
    char line[512];
    int prefix = 1;
    av_log_format_line2(source, level, format, arguments, line, sizeof line, &prefix);
    (*cav_current_log_sink())(level, line);
}
static inline void cav_send_log_to(cav_log_sink sink) {
    *cav_current_log_sink() = sink;
    av_log_set_callback(cav_log_line);
}

// What an encoder on a graphics processor takes: NV12 of a size, in surfaces of the device. NULL when there can be none.
static inline AVBufferRef *cav_surfaces(AVBufferRef *device, enum AVPixelFormat kind, int width, int height) {
    AVBufferRef *surfaces = av_hwframe_ctx_alloc(device);
    if (!surfaces) return NULL;
    AVHWFramesContext *frames = (AVHWFramesContext *)surfaces->data;
    frames->format = kind;
    frames->sw_format = AV_PIX_FMT_NV12;
    frames->width = width;
    frames->height = height;
    frames->initial_pool_size = 8;
    if (av_hwframe_ctx_init(surfaces) < 0) av_buffer_unref(&surfaces);
    return surfaces;
}

// swscale takes arrays of four pointers; here are the two cases that are used: a packed picture in, or three planes.
static inline int cav_scale_packed(struct SwsContext *context, const uint8_t *bytes, int stride, int height,
                                   AVFrame *frame) {
    const uint8_t *const planes[4] = {bytes, NULL, NULL, NULL};
    const int strides[4] = {stride, 0, 0, 0};
    return sws_scale(context, planes, strides, 0, height, frame->data, frame->linesize);
}

static inline int cav_scale_planes(struct SwsContext *context, const uint8_t *luma, const uint8_t *blue,
                                   const uint8_t *red, int stride, int chroma_stride, int height, AVFrame *frame) {
    const uint8_t *const planes[4] = {luma, blue, red, NULL};
    const int strides[4] = {stride, chroma_stride, chroma_stride, 0};
    return sws_scale(context, planes, strides, 0, height, frame->data, frame->linesize);
}
