internal import Foundation
internal import Glibc
internal import Platform
internal import TestSupport
internal import Testing

/// A D-Bus of its own and an avahi-daemon in network, mount and process namespaces of its own: the machine's are never
/// touched.
///
/// libdbus reads the address of the system bus once in a process, so there is one place for all tests of this process.
final class PrivateAvahi {
    static let isPossible =
        geteuid() == 0
        && ["/usr/bin/dbus-daemon", "/usr/sbin/avahi-daemon", "/usr/bin/unshare"].allSatisfy { Files.exists($0) }

    private static let folder: String = {
        let path = "/tmp/downbeat-avahi-\(getpid())"
        try? Files.makeFolder(path)
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(path)/bus", 1)
        return path
    }()

    private var bus: Process?
    private var daemon: Process?

    init() throws {
        let folder = Self.folder
        try AtomicFile.write(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" \
            "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>system</type><listen>unix:path=\(folder)/bus</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow receive_sender="*" eavesdrop="true"/><allow own="*"/>
            <allow user="*"/></policy></busconfig>
            """, to: "\(folder)/bus.conf")
        try AtomicFile.write(
            """
            [server]
            host-name=lab
            enable-dbus=yes
            [publish]
            publish-workstation=no

            """, to: "\(folder)/avahi.conf")
    }

    deinit {
        stopDaemon()
        kill(bus)
        try? Files.removeTree(Self.folder)
    }

    func startBus() throws {
        try? Files.remove("\(Self.folder)/bus")
        bus = try start("/usr/bin/dbus-daemon", ["--config-file=\(Self.folder)/bus.conf", "--nofork", "--nopidfile"])
    }

    func startDaemon() throws {
        let script = """
            mount -t tmpfs tmpfs /run && mkdir -p /run/avahi-daemon && ip link set lo up \
            && ip link add lan0 type veth peer name lan1 && ip addr add 10.9.0.1/24 dev lan0 \
            && ip link set lan0 up && ip link set lan1 up && ip route add 224.0.0.0/4 dev lan0 \
            && exec avahi-daemon --no-drop-root --no-rlimits --no-chroot -f \(Self.folder)/avahi.conf
            """
        // The daemon dies with unshare, and unshare is what we hold.
        daemon = try start(
            "/usr/bin/unshare",
            ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script])
    }

    func stopDaemon() {
        kill(daemon)
        daemon = nil
    }

    /// By SIGKILL: a child inherits the signal mask of the pool's thread that starts it, which has SIGTERM blocked.
    private func kill(_ process: Process?) {
        guard let process, process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    private func start(_ path: String, _ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}
