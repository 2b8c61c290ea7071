# A guest with Debian's stock kernel, for labs that need real drivers. Sourced by bash.
#
# The guest's root is this machine's root, read-only over 9p, below a layer in memory: what is built here runs there
# unchanged, and what it writes is gone when it ends, except below /out. It is pure emulation, about ten times slower.
#
#   guest_prepare                    packages, kernel and first file system, into the cache
#   guest_start OUT SECONDS SCRIPT [QEMU ARGUMENT...]
#                                    boots in the background and runs SCRIPT (a file) in the guest by bash, with OUT as
#                                    /out; GUEST_PREFIX (an array) is put in front of qemu. Sets GUEST_PID
#   guest_booted OUT                 waits for the first line of the guest; 1 when it doesn't come
#   guest_wait OUT                   waits for its end; the status of SCRIPT, 125 when it left none
#   guest_stop                       ends it

guest_cache=${DOWNBEAT_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/downbeat-lab}
GUEST_PREFIX=()
GUEST_PID=

guest_packages=(qemu-system-x86 busybox-static cpio kmod iproute2 udev dbus avahi-daemon avahi-utils v4l-utils alsa-utils)

guest_prepare() {
    local missing=() package
    for package in "${guest_packages[@]}"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || return 1
    fi
    mkdir -p "$guest_cache/debs" || return 1
    guest_kernel || return 1
    [ "$guest_cache/initrd.cpio" -nt "$guest_cache/kernel/boot/vmlinuz-$GUEST_KERNEL" ] || guest_first_files
}

# The kernel of the package `linux-image-amd64`, unpacked and never installed. Its name moves with every update, so one
# that is in the cache already is kept. Sets GUEST_KERNEL.
guest_kernel() {
    local package
    GUEST_KERNEL=$(ls "$guest_cache/kernel/lib/modules" 2>/dev/null | head -1)
    [ -n "$GUEST_KERNEL" ] && [ -e "$guest_cache/kernel/lib/modules/$GUEST_KERNEL/modules.dep.bin" ] && return 0
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ {print $2; exit}')
    [ -n "$package" ] || { echo "guest: apt knows no package linux-image-amd64; run apt-get update" >&2; return 1; }
    (cd "$guest_cache/debs" && apt-get download -qq "$package" 2>/dev/null) || return 1
    rm -rf "$guest_cache/kernel"
    dpkg-deb -x "$guest_cache/debs/${package}"_*.deb "$guest_cache/kernel" || return 1
    rm -f "$guest_cache/debs/${package}"_*.deb
    GUEST_KERNEL=${package#linux-image-}
    depmod -b "$guest_cache/kernel" "$GUEST_KERNEL"
}

# What the kernel starts from: busybox and the modules that reach this machine's root, in the order of their needs.
guest_first_files() {
    local folder module verb path rest
    folder=$(mktemp -d) || return 1
    mkdir -p "$folder"/{bin,m,proc,sys,dev,lower,upper,new}
    cp /usr/bin/busybox "$folder/bin/"
    : >"$folder/m/order"
    for module in virtio_pci 9pnet_virtio 9p overlay; do
        while read -r verb path rest; do
            [ "$verb" = insmod ] || continue
            grep -qx "${path##*/}" "$folder/m/order" && continue
            echo "${path##*/}" >>"$folder/m/order"
            cp "$path" "$folder/m/"
        done < <(modprobe -d "$guest_cache/kernel" -S "$GUEST_KERNEL" --show-depends "$module")
    done
    cat >"$folder/init" <<'INIT'
#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sysfs /sys; $B mount -t devtmpfs dev /dev
while read module; do $B insmod /m/$module || echo "guest: insmod $module failed"; done </m/order
$B mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 root /lower || $B poweroff -f
$B mount -t tmpfs -o mode=755 tmpfs /upper; $B mkdir /upper/files /upper/work
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new || $B poweroff -f
$B mkdir -p /new/out
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none out /new/out
for folder in proc sys dev; do $B mount --move /$folder /new/$folder; done
exec $B switch_root /new /bin/bash /out/.init
INIT
    chmod +x "$folder/init"
    (cd "$folder" && find . | cpio -o -H newc --quiet) >"$guest_cache/initrd.cpio"
    rm -rf "$folder"
}

# Process 1 of the guest.
guest_init() {
    cat <<'INIT'
#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts; mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs /run; mkdir -p /run/lock
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
for i in 0:stdin 1:stdout 2:stderr; do [ -e /dev/${i#*:} ] || ln -s /proc/self/fd/${i%%:*} /dev/${i#*:}; done
mount -t debugfs debugfs /sys/kernel/debug; mount -t cgroup2 cgroup2 /sys/fs/cgroup
. /out/.environment
: >/out/.booted
mkdir -p /lib/modules; ln -sfn "$GUEST_MODULES/$(uname -r)" "/lib/modules/$(uname -r)"
hostname "$GUEST_NAME"; ip link set lo up; cd /out
setsid bash /out/.script </dev/null >/out/log 2>&1 & wait $!
echo $? >/out/status; sync
echo o >/proc/sysrq-trigger; sleep 60
INIT
}

# In the guest: device nodes with their stable links, as on a machine with systemd.
guest_udev() { /lib/systemd/systemd-udevd --daemon; udevadm trigger --action=add; udevadm settle; }

guest_start() {
    local out=$1 seconds=$2 script=$3
    shift 3
    mkdir -p "$out"
    rm -f "$out/status" "$out/.booted"
    guest_init >"$out/.init"
    cp "$script" "$out/.script"
    {
        echo "export GUEST_NAME=${GUEST_NAME:-guest} GUEST_MODULES=$guest_cache/kernel/lib/modules"
        declare -f guest_udev
        echo "export -f guest_udev"
    } >"$out/.environment"
    # The bind mount leaves /proc, /sys and /dev of this machine outside of what the guest sees.
    GUEST_SECONDS=$seconds GUEST_OUT=$out GUEST_CACHE=$guest_cache GUEST_KERNEL=$GUEST_KERNEL "${GUEST_PREFIX[@]}" \
        unshare -m --propagation private bash -c '
            root=$(mktemp -d /tmp/downbeat-guest.XXXXXX); mount --bind / "$root"
            timeout "$GUEST_SECONDS" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
                -machine q35 -accel tcg,thread=multi,tb-size=512 -cpu Nehalem -smp 2 -m 2048 \
                -kernel "$GUEST_CACHE/kernel/boot/vmlinuz-$GUEST_KERNEL" -initrd "$GUEST_CACHE/initrd.cpio" \
                -append "console=ttyS0 panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on quiet loglevel=1" \
                -chardev file,id=console,path="$GUEST_OUT/console" -serial chardev:console -device virtio-rng-pci \
                -fsdev local,id=root,path="$root",security_model=none,readonly=on,multidevs=remap \
                -device virtio-9p-pci,fsdev=root,mount_tag=root \
                -fsdev local,id=out,path="$GUEST_OUT",security_model=none \
                -device virtio-9p-pci,fsdev=out,mount_tag=out "$@" </dev/null &
            qemu=$!
            trap "kill $qemu 2>/dev/null" TERM INT
            wait $qemu; wait $qemu 2>/dev/null
            umount -l "$root"; rmdir "$root"' guest "$@" &
    GUEST_PID=$!
}

guest_booted() {
    local i
    for ((i = 0; i < 300; i++)); do
        [ -e "$1/.booted" ] && return 0
        kill -0 "$GUEST_PID" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}

guest_wait() {
    wait "$GUEST_PID"
    GUEST_PID=
    [ -f "$1/status" ] || return 125
    return "$(cat "$1/status")"
}

guest_stop() {
    [ -n "$GUEST_PID" ] || return 0
    kill "$GUEST_PID" 2>/dev/null
    wait "$GUEST_PID" 2>/dev/null
    GUEST_PID=
}
