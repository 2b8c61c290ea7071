// V4L2 as Swift can't import it: ioctl numbers and pixel formats are macros of macros.
#pragma once
#include <libv4l2.h>
#include <linux/videodev2.h>
#include <string.h>
#include <sys/ioctl.h>

static const unsigned long cv4l_VIDIOC_QUERYCAP = VIDIOC_QUERYCAP;
static const unsigned long cv4l_VIDIOC_ENUM_FMT = VIDIOC_ENUM_FMT;
static const unsigned long cv4l_VIDIOC_ENUM_FRAMESIZES = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long cv4l_VIDIOC_ENUM_FRAMEINTERVALS = VIDIOC_ENUM_FRAMEINTERVALS;
static const unsigned long cv4l_VIDIOC_G_FMT = VIDIOC_G_FMT;
static const unsigned long cv4l_VIDIOC_S_FMT = VIDIOC_S_FMT;
static const unsigned long cv4l_VIDIOC_S_PARM = VIDIOC_S_PARM;
static const unsigned long cv4l_VIDIOC_REQBUFS = VIDIOC_REQBUFS;
static const unsigned long cv4l_VIDIOC_QUERYBUF = VIDIOC_QUERYBUF;
static const unsigned long cv4l_VIDIOC_QBUF = VIDIOC_QBUF;
static const unsigned long cv4l_VIDIOC_DQBUF = VIDIOC_DQBUF;
static const unsigned long cv4l_VIDIOC_STREAMON = VIDIOC_STREAMON;
static const unsigned long cv4l_VIDIOC_STREAMOFF = VIDIOC_STREAMOFF;
static const unsigned long cv4l_VIDIOC_QUERY_EXT_CTRL = VIDIOC_QUERY_EXT_CTRL;
static const unsigned long cv4l_VIDIOC_QUERYMENU = VIDIOC_QUERYMENU;
static const __u32 cv4l_CTRL_NEXT = V4L2_CTRL_FLAG_NEXT_CTRL;
static const __u32 cv4l_CID_EXPOSURE_AUTO_PRIORITY = V4L2_CID_EXPOSURE_AUTO_PRIORITY;

static const __u32 cv4l_PIX_FMT_YUYV = V4L2_PIX_FMT_YUYV;
static const __u32 cv4l_PIX_FMT_NV12 = V4L2_PIX_FMT_NV12;
static const __u32 cv4l_PIX_FMT_YUV420 = V4L2_PIX_FMT_YUV420;
static const __u32 cv4l_PIX_FMT_UYVY = V4L2_PIX_FMT_UYVY;
static const __u32 cv4l_PIX_FMT_YVYU = V4L2_PIX_FMT_YVYU;
static const __u32 cv4l_PIX_FMT_GREY = V4L2_PIX_FMT_GREY;
static const __u32 cv4l_PIX_FMT_NV21 = V4L2_PIX_FMT_NV21;
static const __u32 cv4l_PIX_FMT_YVU420 = V4L2_PIX_FMT_YVU420;
static const __u32 cv4l_PIX_FMT_RGB24 = V4L2_PIX_FMT_RGB24;
static const __u32 cv4l_PIX_FMT_BGR24 = V4L2_PIX_FMT_BGR24;
static const __u32 cv4l_PIX_FMT_MJPEG = V4L2_PIX_FMT_MJPEG;
static const __u32 cv4l_PIX_FMT_JPEG = V4L2_PIX_FMT_JPEG;
static const __u32 cv4l_PIX_FMT_H264 = V4L2_PIX_FMT_H264;
static const __u32 cv4l_PIX_FMT_HEVC = V4L2_PIX_FMT_HEVC;

// A buffer's stamp in nanoseconds, saturating: `struct timeval` belongs to whichever module Swift met it in first.
static inline long long cv4l_stamp_ns(const struct v4l2_buffer *buffer) {
    long long seconds = buffer->timestamp.tv_sec, result;
    if (__builtin_mul_overflow(seconds, 1000000000LL, &result) ||
        __builtin_add_overflow(result, (long long)buffer->timestamp.tv_usec * 1000, &result))
        return seconds < 0 ? -0x7fffffffffffffffLL : 0x7fffffffffffffffLL;
    return result;
}

// Reads (VIDIOC_G_EXT_CTRLS) or sets (VIDIOC_S_EXT_CTRLS) one control; `wide` is for those of 64 bits.
static inline int cv4l_control(int node, int set, __u32 id, int wide, long long *value) {
    struct v4l2_ext_control control;
    struct v4l2_ext_controls controls;
    memset(&control, 0, sizeof control);
    memset(&controls, 0, sizeof controls);
    control.id = id;
    if (set && wide) control.value64 = *value;
    else if (set) control.value = (__s32)*value;
    controls.which = V4L2_CTRL_WHICH_CUR_VAL;
    controls.count = 1;
    controls.controls = &control;
    int result = ioctl(node, set ? VIDIOC_S_EXT_CTRLS : VIDIOC_G_EXT_CTRLS, &controls);
    if (result == 0) *value = wide ? control.value64 : control.value;
    return result;
}
