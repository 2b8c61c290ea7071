// Apart from CLinux.c: <asm/termbits.h> and <termios.h> can't be in one file.
#include "CLinux.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <sys/ioctl.h>

int clinux_serial_raw(int fd, unsigned baud) {
    struct termios2 settings;
    if (ioctl(fd, TCGETS2, &settings) != 0) return errno;
    settings.c_iflag = IGNBRK;
    settings.c_oflag = 0;
    settings.c_lflag = 0;
    settings.c_cflag = CS8 | CREAD | CLOCAL | BOTHER | (BOTHER << IBSHIFT);
    settings.c_ispeed = baud;
    settings.c_ospeed = baud;
    settings.c_cc[VMIN] = 0;
    settings.c_cc[VTIME] = 0;
    if (ioctl(fd, TCSETS2, &settings) != 0) return errno;
    ioctl(fd, TCFLSH, TCIOFLUSH);
    if (ioctl(fd, TCGETS2, &settings) != 0) return errno;
    // A chip rounds to what its divider can do; beyond 3 % the bytes are garbage.
    long long off = (long long)settings.c_ospeed - (long long)baud;
    if (off < 0) off = -off;
    return off * 100 > 3LL * baud ? ERANGE : 0;
}

int clinux_serial_lines(int fd, int dtr, int rts) {
    int on = (dtr ? TIOCM_DTR : 0) | (rts ? TIOCM_RTS : 0);
    int off = (dtr ? 0 : TIOCM_DTR) | (rts ? 0 : TIOCM_RTS);
    if (on && ioctl(fd, TIOCMBIS, &on) != 0) return errno;
    if (off && ioctl(fd, TIOCMBIC, &off) != 0) return errno;
    return 0;
}
