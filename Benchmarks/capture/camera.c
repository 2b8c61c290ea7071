/* A camera of the kernel that isn't there: preloaded into a program, it answers the V4L2 calls for /dev/video200 and
 * following as a driver would, at real pace. The same object goes into Downbeat's program and into ffmpeg, so both read
 * the same frames by the same calls, each with its own code for V4L2.
 *
 * CAMERA_FORMAT   MJPG or YUYV
 * CAMERA_SIZE     WIDTHxHEIGHT
 * CAMERA_RATE     frames a second
 * CAMERA_FRAMES   folder of files 0, 1, … with a frame each; a buffer shows one of them, as memory that hardware filled
 * CAMERA_LOG      file that gets a line for each stream at its end: frames given, frames lost for want of a buffer
 *
 * Nothing is copied here: a frame is in its buffer before the stream begins. The descriptor is a timer, so poll and
 * epoll work on it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NODE 200
#define NODES 16
#define BUFFERS 32

enum where { OUTSIDE, QUEUED, DONE };

struct buffer {
    void *memory;
    size_t used;
    enum where where;
    uint32_t sequence;
    int64_t stamp;
};

struct camera {
    int fd, memory, on;
    size_t length;
    unsigned count, width, height, format;
    double rate;
    struct buffer buffers[BUFFERS];
    unsigned queue[BUFFERS], queued, done[BUFFERS], finished;
    int64_t start, due;
    long given, lost;
};

static struct camera *cameras[NODES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int (*real_open)(const char *, int, ...);
static int (*real_ioctl)(int, unsigned long, ...);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_close)(int);

__attribute__((constructor)) static void setup(void) {
    real_open = dlsym(RTLD_NEXT, "open");
    real_ioctl = dlsym(RTLD_NEXT, "ioctl");
    real_mmap = dlsym(RTLD_NEXT, "mmap");
    real_close = dlsym(RTLD_NEXT, "close");
}

static const char *setting(const char *name, const char *fallback) {
    const char *value = getenv(name);
    return value ? value : fallback;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct camera *find(int fd) {
    for (int i = 0; i < NODES; i++)
        if (cameras[i] && cameras[i]->fd == fd) return cameras[i];
    return NULL;
}

static void remove_first(unsigned *list, unsigned *count) {
    memmove(list, list + 1, --*count * sizeof *list);
}

/* Frames that were taken since the last look go into the buffers that were waiting then. */
static void advance(struct camera *camera) {
    int64_t period = (int64_t)(1e9 / camera->rate), time = now();
    while (camera->on && camera->start + camera->due * period <= time) {
        int64_t sequence = camera->due++;
        if (!camera->queued) {
            camera->lost++;
            continue;
        }
        unsigned index = camera->queue[0];
        remove_first(camera->queue, &camera->queued);
        struct buffer *buffer = &camera->buffers[index];
        buffer->where = DONE;
        buffer->sequence = (uint32_t)sequence;
        buffer->stamp = camera->start + sequence * period;
        camera->done[camera->finished++] = index;
    }
}

static int make(const char *path) {
    int node = atoi(path + strlen("/dev/video")) - FIRST_NODE;
    if (node < 0 || node >= NODES || cameras[node]) {
        errno = node < 0 || node >= NODES ? ENOENT : EBUSY;
        return -1;
    }
    struct camera *camera = calloc(1, sizeof *camera);
    camera->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    camera->memory = -1;
    const char *format = setting("CAMERA_FORMAT", "MJPG");
    camera->format = v4l2_fourcc(format[0], format[1], format[2], format[3]);
    sscanf(setting("CAMERA_SIZE", "1920x1080"), "%ux%u", &camera->width, &camera->height);
    camera->rate = atof(setting("CAMERA_RATE", "30"));
    camera->length = ((size_t)camera->width * camera->height * 2 + 4095) & ~(size_t)4095;
    cameras[node] = camera;
    return camera->fd;
}

static int is_ours(const char *path) { return path && !strncmp(path, "/dev/video2", 11) && strlen(path) == 13; }

int open(const char *path, int flags, ...) {
    if (is_ours(path)) {
        pthread_mutex_lock(&lock);
        int fd = make(path);
        pthread_mutex_unlock(&lock);
        return fd;
    }
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return real_open(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return open(path, flags, mode);
}

static void describe(struct camera *camera, struct v4l2_buffer *view, unsigned index) {
    struct buffer *buffer = &camera->buffers[index];
    memset(view, 0, sizeof *view);
    view->index = index;
    view->type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    view->memory = V4L2_MEMORY_MMAP;
    view->length = (uint32_t)camera->length;
    view->m.offset = index * (uint32_t)camera->length;
    view->bytesused = (uint32_t)buffer->used;
    view->sequence = buffer->sequence;
    view->timestamp.tv_sec = buffer->stamp / 1000000000;
    view->timestamp.tv_usec = buffer->stamp % 1000000000 / 1000;
    view->field = V4L2_FIELD_NONE;
    view->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_MAPPED;
}

static int request(struct camera *camera, struct v4l2_requestbuffers *wish) {
    if (wish->count == 0) return 0;
    if (wish->count > BUFFERS) wish->count = BUFFERS;
    camera->count = wish->count;
    camera->memory = memfd_create("camera", MFD_CLOEXEC);
    if (ftruncate(camera->memory, (off_t)(camera->length * camera->count))) return -1;
    for (unsigned i = 0; i < camera->count; i++) {
        struct buffer *buffer = &camera->buffers[i];
        buffer->memory = real_mmap(NULL, camera->length, PROT_READ | PROT_WRITE, MAP_SHARED, camera->memory,
                                   (off_t)(i * camera->length));
        char path[4096];
        snprintf(path, sizeof path, "%s/%u", setting("CAMERA_FRAMES", "."), i % 8);
        int file = real_open(path, O_RDONLY);
        ssize_t got = file < 0 ? -1 : read(file, buffer->memory, camera->length);
        if (got <= 0) {
            fprintf(stderr, "camera: no frame in %s\n", path);
            abort();
        }
        real_close(file);
        buffer->used = (size_t)got;
        munmap(buffer->memory, camera->length);
    }
    return 0;
}

static int dequeue(struct camera *camera, struct v4l2_buffer *view) {
    uint64_t expired;
    if (camera->finished <= 1 && read(camera->fd, &expired, sizeof expired) < 0) errno = 0;
    advance(camera);
    if (!camera->finished) {
        errno = EAGAIN;
        return -1;
    }
    unsigned index = camera->done[0];
    remove_first(camera->done, &camera->finished);
    camera->buffers[index].where = OUTSIDE;
    camera->given++;
    describe(camera, view, index);
    return 0;
}

static int stream_off(struct camera *camera) {
    if (camera->on) {
        advance(camera);
        const char *log = getenv("CAMERA_LOG");
        if (log) {
            char line[64];
            int length = snprintf(line, sizeof line, "%ld %ld\n", camera->given, camera->lost), file;
            if ((file = real_open(log, O_WRONLY | O_CREAT | O_APPEND, 0644)) >= 0) {
                if (write(file, line, (size_t)length) < 0) perror("camera");
                real_close(file);
            }
        }
    }
    camera->on = 0;
    struct itimerspec never = {0};
    timerfd_settime(camera->fd, 0, &never, NULL);
    camera->queued = camera->finished = 0;
    return 0;
}

static int stream_on(struct camera *camera) {
    camera->start = now() + (int64_t)(1e9 / camera->rate);
    camera->due = camera->given = camera->lost = 0;
    camera->on = 1;
    int64_t period = (int64_t)(1e9 / camera->rate);
    struct itimerspec pace = {.it_interval = {0, period},
                              .it_value = {camera->start / 1000000000, camera->start % 1000000000}};
    return timerfd_settime(camera->fd, TFD_TIMER_ABSTIME, &pace, NULL);
}

static void fill(struct camera *camera, struct v4l2_format *format) {
    format->fmt.pix.width = camera->width;
    format->fmt.pix.height = camera->height;
    format->fmt.pix.pixelformat = camera->format;
    format->fmt.pix.field = V4L2_FIELD_NONE;
    format->fmt.pix.bytesperline = camera->format == V4L2_PIX_FMT_YUYV ? camera->width * 2 : 0;
    format->fmt.pix.sizeimage = camera->width * camera->height * 2;
}

static int answer(struct camera *camera, unsigned long number, void *argument) {
    switch (number) {
    case VIDIOC_QUERYCAP: {
        struct v4l2_capability *it = argument;
        memset(it, 0, sizeof *it);
        strcpy((char *)it->driver, "benchmark");
        strcpy((char *)it->card, "camera of the benchmark");
        strcpy((char *)it->bus_info, "benchmark");
        it->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        it->capabilities = it->device_caps | V4L2_CAP_DEVICE_CAPS;
        return 0;
    }
    case VIDIOC_ENUM_FMT: {
        struct v4l2_fmtdesc *it = argument;
        if (it->index) break;
        it->pixelformat = camera->format;
        it->flags = camera->format == V4L2_PIX_FMT_MJPEG ? V4L2_FMT_FLAG_COMPRESSED : 0;
        return 0;
    }
    case VIDIOC_ENUM_FRAMESIZES: {
        struct v4l2_frmsizeenum *it = argument;
        if (it->index) break;
        it->type = V4L2_FRMSIZE_TYPE_DISCRETE;
        it->discrete.width = camera->width;
        it->discrete.height = camera->height;
        return 0;
    }
    case VIDIOC_ENUM_FRAMEINTERVALS: {
        struct v4l2_frmivalenum *it = argument;
        if (it->index) break;
        it->type = V4L2_FRMIVAL_TYPE_DISCRETE;
        it->discrete.numerator = 1;
        it->discrete.denominator = (uint32_t)camera->rate;
        return 0;
    }
    case VIDIOC_G_FMT:
    case VIDIOC_S_FMT: fill(camera, argument); return 0;
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM: {
        struct v4l2_streamparm *it = argument;
        it->parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
        it->parm.capture.timeperframe.numerator = 1;
        it->parm.capture.timeperframe.denominator = (uint32_t)camera->rate;
        return 0;
    }
    case VIDIOC_G_INPUT: *(int *)argument = 0; return 0;
    case VIDIOC_S_INPUT: return 0;
    case VIDIOC_ENUMINPUT: {
        struct v4l2_input *it = argument;
        if (it->index) break;
        memset(it, 0, sizeof *it);
        strcpy((char *)it->name, "camera");
        it->type = V4L2_INPUT_TYPE_CAMERA;
        return 0;
    }
    case VIDIOC_REQBUFS: return request(camera, argument);
    case VIDIOC_QUERYBUF: {
        struct v4l2_buffer *it = argument;
        if (it->index >= camera->count) break;
        describe(camera, it, it->index);
        return 0;
    }
    case VIDIOC_QBUF: {
        struct v4l2_buffer *it = argument;
        if (it->index >= camera->count || camera->buffers[it->index].where != OUTSIDE) break;
        advance(camera);
        camera->buffers[it->index].where = QUEUED;
        camera->queue[camera->queued++] = it->index;
        return 0;
    }
    case VIDIOC_DQBUF: return dequeue(camera, argument);
    case VIDIOC_STREAMON: return stream_on(camera);
    case VIDIOC_STREAMOFF: {
        int result = stream_off(camera);
        for (unsigned i = 0; i < camera->count; i++) camera->buffers[i].where = OUTSIDE;
        return result;
    }
    default: errno = ENOTTY; return -1;
    }
    errno = EINVAL;
    return -1;
}

int ioctl(int fd, unsigned long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    struct camera *camera = find(fd);
    int result = camera ? answer(camera, number & 0xffffffff, argument) : 0, error = errno;
    pthread_mutex_unlock(&lock);
    if (!camera) return real_ioctl(fd, number, argument);
    errno = error;
    return result;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    if (!real_mmap) setup();
    struct camera *camera = fd < 0 ? NULL : find(fd);
    return real_mmap(address, length, protection, flags, camera ? camera->memory : fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap(address, length, protection, flags, fd, offset);
}

int close(int fd) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NODES; i++) {
        struct camera *camera = cameras[i];
        if (!camera || camera->fd != fd) continue;
        stream_off(camera);
        if (camera->memory >= 0) real_close(camera->memory);
        free(camera);
        cameras[i] = NULL;
    }
    pthread_mutex_unlock(&lock);
    return real_close(fd);
}
