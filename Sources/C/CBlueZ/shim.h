// libbluetooth, and the Bluetooth sockets of the kernel. The address structures are filled here: their sizes and paddings
// are the kernel's, and their constants are macros that Swift doesn't see.
#pragma once
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/hci_lib.h>
#include <bluetooth/l2cap.h>

enum { CBLUEZ_FIXED_CHANNEL_ATT = 4 };

// A socket for ATT packets to a low-energy device; -1 and errno. `adapter` is six bytes in the order of the air (the
// lowest first), or NULL for any adapter.
static inline int cbluez_att_socket(const uint8_t *adapter) {
    int fd = socket(AF_BLUETOOTH, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, BTPROTO_L2CAP);
    if (fd < 0) return -1;
    struct sockaddr_l2 local;
    memset(&local, 0, sizeof local);
    local.l2_family = AF_BLUETOOTH;
    if (adapter) memcpy(&local.l2_bdaddr, adapter, 6);
    local.l2_cid = htobs(CBLUEZ_FIXED_CHANNEL_ATT);
    local.l2_bdaddr_type = BDADDR_LE_PUBLIC;
    if (bind(fd, (struct sockaddr *)&local, sizeof local) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// Begins to connect; 0, or -1 and errno (EINPROGRESS: the socket turns writable when it is done).
static inline int cbluez_att_connect(int fd, const uint8_t *address, int is_random) {
    struct sockaddr_l2 remote;
    memset(&remote, 0, sizeof remote);
    remote.l2_family = AF_BLUETOOTH;
    memcpy(&remote.l2_bdaddr, address, 6);
    remote.l2_cid = htobs(CBLUEZ_FIXED_CHANNEL_ATT);
    remote.l2_bdaddr_type = is_random ? BDADDR_LE_RANDOM : BDADDR_LE_PUBLIC;
    return connect(fd, (struct sockaddr *)&remote, sizeof remote);
}

static inline int cbluez_socket_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

static inline int cbluez_set_security(int fd, int level) {
    struct bt_security security;
    memset(&security, 0, sizeof security);
    security.level = (uint8_t)level;
    return setsockopt(fd, SOL_BLUETOOTH, BT_SECURITY, &security, sizeof security);
}

static inline int cbluez_security(int fd) {
    struct bt_security security;
    socklen_t length = sizeof security;
    memset(&security, 0, sizeof security);
    return getsockopt(fd, SOL_BLUETOOTH, BT_SECURITY, &security, &length) < 0 ? -1 : security.level;
}

// The connection handle of HCI; -1 and errno.
static inline int cbluez_connection_handle(int fd) {
    struct l2cap_conninfo info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    return getsockopt(fd, SOL_L2CAP, L2CAP_CONNINFO, &info, &length) < 0 ? -1 : info.hci_handle;
}

// The adapter that a connected socket goes through, as an index; -1 when it can't be told.
static inline int cbluez_adapter_of(int fd) {
    struct sockaddr_l2 local;
    socklen_t length = sizeof local;
    memset(&local, 0, sizeof local);
    if (getsockname(fd, (struct sockaddr *)&local, &length) < 0) return -1;
    char text[18];
    ba2str(&local.l2_bdaddr, text);
    return hci_devid(text);
}

// A raw socket that hears the events of one adapter: disconnections, command results, and what low energy reports. -1
// and errno.
static inline int cbluez_event_socket(int adapter) {
    int fd = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, BTPROTO_HCI);
    if (fd < 0) return -1;
    struct hci_filter filter;
    hci_filter_clear(&filter);
    hci_filter_set_ptype(HCI_EVENT_PKT, &filter);
    hci_filter_set_event(EVT_DISCONN_COMPLETE, &filter);
    hci_filter_set_event(EVT_CMD_COMPLETE, &filter);
    hci_filter_set_event(EVT_CMD_STATUS, &filter);
    hci_filter_set_event(EVT_LE_META_EVENT, &filter);
    struct sockaddr_hci address;
    memset(&address, 0, sizeof address);
    address.hci_family = AF_BLUETOOTH;
    address.hci_dev = (unsigned short)adapter;
    address.hci_channel = HCI_CHANNEL_RAW;
    if (setsockopt(fd, SOL_HCI, HCI_FILTER, &filter, sizeof filter) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// A socket of the kernel's management channel; -1 and errno.
static inline int cbluez_control_socket(void) {
    int fd = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_HCI);
    if (fd < 0) return -1;
    struct sockaddr_hci address;
    memset(&address, 0, sizeof address);
    address.hci_family = AF_BLUETOOTH;
    address.hci_dev = HCI_DEV_NONE;
    address.hci_channel = HCI_CHANNEL_CONTROL;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// The indices of the adapters, at most `most`; -1 and errno.
static inline int cbluez_adapters(int *indices, int most) {
    struct {
        uint16_t count;
        struct hci_dev_req entries[HCI_MAX_DEV];
    } list;
    memset(&list, 0, sizeof list);
    list.count = HCI_MAX_DEV;
    int fd = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_HCI);
    if (fd < 0) return -1;
    int failed = ioctl(fd, HCIGETDEVLIST, &list);
    int error = errno;
    close(fd);
    errno = error;
    if (failed < 0) return -1;
    int count = list.count < most ? list.count : most;
    for (int i = 0; i < count; i++) indices[i] = list.entries[i].dev_id;
    return count;
}

struct cbluez_adapter {
    uint8_t address[6];
    char name[9];
    int is_up;
};

// What an adapter is; 0, or -1 and errno.
static inline int cbluez_adapter_info(int index, struct cbluez_adapter *answer) {
    struct hci_dev_info info;
    memset(&info, 0, sizeof info);
    if (hci_devinfo(index, &info) < 0) return -1;
    memcpy(answer->address, &info.bdaddr, 6);
    memcpy(answer->name, info.name, 8);
    answer->name[8] = 0;
    answer->is_up = hci_test_bit(HCI_UP, &info.flags) != 0;
    return 0;
}

// Sends one command without waiting for its result; 0, or -1 and errno.
static inline int cbluez_send_command(int fd, uint16_t group, uint16_t command, const uint8_t *parameters,
                                      uint8_t length) {
    return hci_send_cmd(fd, group, command, length, (void *)parameters);
}

// Sockets of this machine that keep packets apart, as those of L2CAP do. Here for the same reason, and since the types of
// sys/socket.h belong to whichever module shows them first.
static inline int cbluez_local_socket(const char *path, int listening) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (listening ? SOCK_NONBLOCK : 0), 0);
    if (fd < 0) return -1;
    int failed = listening ? bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4)
                           : connect(fd, (struct sockaddr *)&address, sizeof address);
    if (failed) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static inline int cbluez_local_pair(int *ends) { return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }

static inline ssize_t cbluez_receive(int fd, void *buffer, size_t size) { return recv(fd, buffer, size, MSG_DONTWAIT); }

static inline ssize_t cbluez_send(int fd, const void *bytes, size_t size) {
    return send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}
