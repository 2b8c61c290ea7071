internal import CUdev
internal import Platform

/// Says that cameras were plugged in or pulled out.
///
/// Concurrency: used by one thread, the camera's event loop.
package protocol PlugMonitor: AnyObject {
    /// What to poll.
    var descriptor: Int32 { get }

    /// Takes all that waits; true when a video node has come.
    func drain() -> Bool
}

/// Makes a monitor; nil where the system has none, and then the camera looks by itself every 2 s.
package typealias PlugWatch = @Sendable () -> (any PlugMonitor)?

/// The events of udev: they come when a node's links and rights are set.
final class UdevMonitor: PlugMonitor {
    private let udev: OpaquePointer
    private let monitor: OpaquePointer

    /// The corresponding C functions are `udev_monitor_new_from_netlink` and `udev_monitor_enable_receiving`.
    init?() {
        guard let udev = udev_new() else { return nil }
        // Without a udev daemon (in a container) only the kernel's own events can be had.
        let source = Files.exists("/run/udev/control") ? "udev" : "kernel"
        guard let monitor = udev_monitor_new_from_netlink(udev, source) else {
            udev_unref(udev)
            return nil
        }
        guard udev_monitor_filter_add_match_subsystem_devtype(monitor, "video4linux", nil) >= 0,
            udev_monitor_enable_receiving(monitor) >= 0
        else {
            udev_monitor_unref(monitor)
            udev_unref(udev)
            return nil
        }
        self.udev = udev
        self.monitor = monitor
    }

    deinit {
        udev_monitor_unref(monitor)
        udev_unref(udev)
    }

    var descriptor: Int32 { udev_monitor_get_fd(monitor) }

    func drain() -> Bool {
        var hasCome = false
        while let device = udev_monitor_receive_device(monitor) {
            let action = udev_device_get_action(device).map { String(cString: $0) }
            hasCome = hasCome || action == "add" || action == "change" || action == "bind"
            udev_device_unref(device)
        }
        return hasCome
    }
}
