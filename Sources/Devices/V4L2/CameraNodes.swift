internal import CUdev
internal import CV4L
internal import Glibc
internal import Platform

/// The video nodes of this machine.
enum CameraNodes {
    /// Asks every node; may block for a moment.
    static func all() -> [CameraNode] {
        let names = ((try? Files.list("/dev")) ?? []).filter { $0.hasPrefix("video") && Int($0.dropFirst(5)) != nil }
        let numbered = names.sorted { (Int($0.dropFirst(5)) ?? 0) < (Int($1.dropFirst(5)) ?? 0) }
        let udev = udev_new()
        defer { udev_unref(udev) }
        return numbered.map { node(named: $0, udev) }
    }

    /// What a path points to.
    static func resolve(_ path: String) -> String? {
        guard path.hasPrefix("/"), let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    private static func node(named name: String, _ udev: OpaquePointer?) -> CameraNode {
        var node = CameraNode(path: "/dev/\(name)", card: sysfsName(name) ?? name, bus: "")
        // Without a udev database (in a container) the driver's own words must do.
        if let udev, let device = udev_device_new_from_subsystem_sysname(udev, "video4linux", name) {
            defer { udev_device_unref(device) }
            node.serial = udev_device_get_property_value(device, "ID_SERIAL_SHORT").map { String(cString: $0) }
            var entry = udev_device_get_devlinks_list_entry(device)
            while let current = entry {
                if let link = udev_list_entry_get_name(current) { node.links.append(String(cString: link)) }
                entry = udev_list_entry_get_next(current)
            }
            node.links = node.links.filter { $0.hasPrefix("/dev/v4l/") }.sorted()
            node.index = text(udev_device_get_sysattr_value(device, "index")).flatMap { Int($0) } ?? 0
            // It belongs to the device below it and is freed with that.
            if let usb = udev_device_get_parent_with_subsystem_devtype(device, "usb", "usb_device") {
                node.usb = place(usb)
                node.serial = node.serial ?? text(udev_device_get_sysattr_value(usb, "serial"))
            }
        }
        do throws(Errno) {
            let port = try V4L2Node(path: node.path)
            defer { port.close() }
            let capability = try port.capability()
            node.card = capability.card
            node.bus = capability.bus
            node.driver = capability.driver
            node.capturesVideo = CameraAbility.isCamera(capability)
        } catch {
            // It may be a camera: better to show it with its problem than to hide it.
            node.problem = V4L2Fault(error, during: .open, path: node.path).cause
            node.capturesVideo = false
        }
        return node
    }

    private static func place(_ device: OpaquePointer) -> USBPlace? {
        guard let bus = text(udev_device_get_sysattr_value(device, "busnum")).flatMap({ Int($0) }) else { return nil }
        return USBPlace(
            bus: bus, port: text(udev_device_get_sysname(device)) ?? "?",
            speed: text(udev_device_get_sysattr_value(device, "speed")).flatMap { Double($0) } ?? 0,
            vendor: text(udev_device_get_sysattr_value(device, "idVendor")) ?? "????",
            product: text(udev_device_get_sysattr_value(device, "idProduct")) ?? "????",
            release: text(udev_device_get_sysattr_value(device, "bcdDevice")))
    }

    private static func text(_ letters: UnsafePointer<CChar>?) -> String? {
        guard let letters else { return nil }
        let text = String(cString: letters)
        return text.isEmpty ? nil : text
    }

    private static func sysfsName(_ name: String) -> String? {
        guard let bytes = try? Files.read("/sys/class/video4linux/\(name)/name", limit: 256) else { return nil }
        let text = String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0 }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }
}

/// What the capability flags say.
enum CameraAbility {
    /// Whether video can be captured into mapped buffers.
    static func isCamera(_ capability: V4L2Capability) -> Bool {
        capability.flags & UInt32(V4L2_CAP_VIDEO_CAPTURE) != 0 && capability.flags & UInt32(V4L2_CAP_STREAMING) != 0
    }
}
