// What Swift's Glibc module lacks on Linux: headers that it doesn't include, macros that don't import, and functions
// that glibc declares only under _GNU_SOURCE (which Swift's importer does not define).
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/un.h>

// Thread names of at most 15 bytes (pthread_setname_np is GNU-only).
void clinux_set_thread_name(const char *name);

// SCHED_FIFO for the calling thread; 0, or the errno.
int clinux_set_thread_fifo(int priority);

// getopt_long keeps its state in globals, which Swift 6 rejects; the accessors keep that state in C.
struct clinux_option {
    const char *name;
    int takes_value;
    int short_name;
};
void clinux_getopt_reset(void);
// The index into `options` of the next option; -1 at the end, -2 for an unknown option, -3 for a missing value, -4 for a
// value where none is taken.
int clinux_getopt(int argc, char *const *argv, const struct clinux_option *options, int count);
const char *clinux_optarg(void);
int clinux_optind(void);

// One datagram with the kernel's receive stamp (SO_TIMESTAMPNS, CLOCK_REALTIME ns; 0 when the kernel gave none).
ssize_t clinux_recv_stamped(int fd, void *buffer, size_t size, struct sockaddr_storage *from, socklen_t *from_length,
                            int64_t *realtime_ns);

// Asks for the kernel's stamp of each datagram that is sent; 0, or -1.
int clinux_ask_send_stamps(int fd);
// The next stamp of a sent datagram (CLOCK_REALTIME ns) with the datagram's number, counted from zero; 1: there was one,
// 2: there was another error message, 0: there was none.
int clinux_send_stamp(int fd, uint32_t *number, int64_t *realtime_ns);

// What the kernel says of the discipline of CLOCK_REALTIME and CLOCK_MONOTONIC (adjtimex).
struct clinux_discipline {
    // The clock state TIME_OK … TIME_ERROR; -1: it can't be read.
    int state;
    // STA_* bits.
    int status;
    int64_t offset_ns;
    // Parts per 65,536 million: ppm with 16 binary places.
    int64_t frequency;
    int64_t tick_us;
    int64_t maximum_error_us;
    int64_t estimated_error_us;
    int tai_offset_s;
};
void clinux_read_discipline(struct clinux_discipline *discipline);

// The CLOCK_* identifiers as plain integers.
extern const int clinux_CLOCK_MONOTONIC;
extern const int clinux_CLOCK_MONOTONIC_RAW;
extern const int clinux_CLOCK_REALTIME;
extern const int clinux_CLOCK_BOOTTIME;
extern const int clinux_CLOCK_TAI;

// pipe2, accept4, syncfs and renameat2 are GNU-only too.
int clinux_pipe_cloexec(int fds[2]);
int clinux_accept_cloexec(int fd);
int clinux_fallocate(int fd, int64_t offset, int64_t length);

// Catches a signal by writing its number as one byte to a descriptor, which should not block.
int clinux_catch_signal(int number, int descriptor);

// A serial line as raw bytes, 8N1, at any baud rate (termios2); what was waiting is thrown away. 0, or the errno: ERANGE
// when the chip can't come within 3 % of the rate.
int clinux_serial_raw(int fd, unsigned baud);

// Sets the lines DTR and RTS; 0, or the errno (a pseudo-terminal has none).
int clinux_serial_lines(int fd, int dtr, int rts);

// The two ends of a new pseudo-terminal, as posix_openpt, grantpt, unlockpt and ptsname_r give them; 0, or the errno.
int clinux_pty(int *master, char *path, size_t size);
