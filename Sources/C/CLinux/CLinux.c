#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void clinux_set_thread_name(const char *name) {
    char cut[16] = {0};
    strncpy(cut, name, sizeof cut - 1);
    pthread_setname_np(pthread_self(), cut);
}

int clinux_set_thread_fifo(int priority) {
    struct sched_param parameters = {.sched_priority = priority};
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
}

enum { max_options = 64 };

void clinux_getopt_reset(void) {
    optind = 0;  // glibc: 0 re-reads the environment and starts anew
    opterr = 0;
}

int clinux_getopt(int argc, char *const *argv, const struct clinux_option *options, int count) {
    struct option table[max_options + 1];
    char shorts[3 * max_options + 2] = ":";
    memset(table, 0, sizeof table);
    if (count > max_options) count = max_options;
    for (int i = 0; i < count; i++) {
        table[i].name = options[i].name;
        table[i].has_arg = options[i].takes_value ? required_argument : no_argument;
        table[i].val = 256 + i;
        if (options[i].short_name) {
            size_t end = strlen(shorts);
            shorts[end] = (char)options[i].short_name;
            shorts[end + 1] = options[i].takes_value ? ':' : 0;
        }
    }
    int found = getopt_long(argc, argv, shorts, table, NULL);
    if (found == -1) return -1;
    if (found >= 256) return found - 256;
    if (found == ':') return -3;
    if (found == '?') return optopt >= 256 ? -4 : -2;
    for (int i = 0; i < count; i++)
        if (options[i].short_name == found) return i;
    return -2;
}

const char *clinux_optarg(void) { return optarg; }
int clinux_optind(void) { return optind; }

ssize_t clinux_recv_stamped(int fd, void *buffer, size_t size, struct sockaddr_storage *from, socklen_t *from_length,
                            int64_t *realtime_ns) {
    struct iovec part = {buffer, size};
    union {
        char bytes[256];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_name = from,
                             .msg_namelen = *from_length,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    *realtime_ns = 0;
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0) return got;
    *from_length = message.msg_namelen;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            *realtime_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
        }
    }
    return got;
}

int clinux_ask_send_stamps(int fd) {
    int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID |
                SOF_TIMESTAMPING_OPT_TSONLY;
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
}

int clinux_send_stamp(int fd, uint32_t *number, int64_t *realtime_ns) {
    char payload[64];
    struct iovec part = {payload, sizeof payload};
    union {
        char bytes[512];
        struct cmsghdr align;
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return 0;
    int has_stamp = 0, has_number = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            *realtime_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
            has_stamp = *realtime_ns != 0;
        } else if ((c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
                   (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
            struct sock_extended_err error;
            memcpy(&error, CMSG_DATA(c), sizeof error);
            if (error.ee_errno != ENOMSG || error.ee_origin != SO_EE_ORIGIN_TIMESTAMPING) continue;
            *number = error.ee_data;
            has_number = 1;
        }
    }
    return has_stamp && has_number ? 1 : 2;
}

void clinux_read_discipline(struct clinux_discipline *discipline) {
    struct timex read = {.modes = 0};
    memset(discipline, 0, sizeof *discipline);
    discipline->state = adjtimex(&read);
    if (discipline->state < 0) return;
    discipline->status = read.status;
    discipline->offset_ns = read.status & STA_NANO ? read.offset : (int64_t)read.offset * 1000;
    discipline->frequency = read.freq;
    discipline->tick_us = read.tick;
    discipline->maximum_error_us = read.maxerror;
    discipline->estimated_error_us = read.esterror;
    discipline->tai_offset_s = read.tai;
}

const int clinux_CLOCK_MONOTONIC = CLOCK_MONOTONIC;
const int clinux_CLOCK_MONOTONIC_RAW = CLOCK_MONOTONIC_RAW;
const int clinux_CLOCK_REALTIME = CLOCK_REALTIME;
const int clinux_CLOCK_BOOTTIME = CLOCK_BOOTTIME;
const int clinux_CLOCK_TAI = CLOCK_TAI;

int clinux_pipe_cloexec(int fds[2]) { return pipe2(fds, O_CLOEXEC); }
int clinux_accept_cloexec(int fd) { return accept4(fd, NULL, NULL, SOCK_CLOEXEC); }
int clinux_fallocate(int fd, int64_t offset, int64_t length) { return fallocate(fd, 0, offset, length); }

int clinux_pty(int *master, char *path, size_t size) {
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno;
    if (grantpt(fd) != 0 || unlockpt(fd) != 0 || ptsname_r(fd, path, size) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    *master = fd;
    return 0;
}

static volatile int signal_descriptor = -1;

static void note_signal(int number)
{
    int saved = errno;
    unsigned char byte = (unsigned char)number;
    // Full means that enough signals are waiting already.
    ssize_t done = write(signal_descriptor, &byte, 1);
    (void)done;
    errno = saved;
}

int clinux_catch_signal(int number, int descriptor)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    signal_descriptor = descriptor;
    return sigaction(number, &action, NULL);
}
