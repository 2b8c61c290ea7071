internal import Devices
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

/// Who a camera is: by its serial number, else by its port, never by its number.
@Suite struct CameraIdentityTests {
    private static func node(
        _ number: Int, serial: String?, port: String, card: String = "C920", index: Int = 0
    ) -> CameraNode {
        CameraNode(
            path: "/dev/video\(number)", card: card, bus: "usb-0000:00:14.0-\(port)", serial: serial,
            links: (serial.map { ["/dev/v4l/by-id/usb-046d_\(card)_\($0)-video-index\(index)"] } ?? [])
                + ["/dev/v4l/by-path/pci-0000:00:14.0-usb-0:\(port):1.0-video-index\(index)"],
            index: index,
            usb: USBPlace(bus: 1, port: "1-\(port)", speed: 480, vendor: "046d", product: "082d"))
    }

    private static let left = node(0, serial: "AAA", port: "1")
    private static let right = node(2, serial: "BBB", port: "2")
    /// After a restart: the numbers are swapped, and the cables stayed.
    private static let afterBoot = [node(2, serial: "AAA", port: "1"), node(0, serial: "BBB", port: "2")]

    @Test func `C1 #23 two of a model that swap their numbers keep their names`() {
        let nodes = [Self.left, Self.right]
        for (before, after) in zip(nodes, Self.afterBoot) {
            let name = before.identity(among: nodes)
            #expect(name.hasPrefix("/dev/v4l/by-id/"))
            guard case .found(let node, nil) = CameraSelection(name, among: Self.afterBoot) else {
                Issue.record("not found without a warning")
                continue
            }
            #expect(node.serial == before.serial && node.path == after.path)
            #expect(node.fingerprint == before.fingerprint)
        }
    }

    @Test func `C1 #23 two links by path are one camera`() {
        var node = Self.left
        // udev of 2023 and later makes a second link that names USB's version.
        node.links.append("/dev/v4l/by-path/pci-0000:00:14.0-usbv2-0:1:1.0-video-index0")
        for link in node.links {
            guard case .found(let found, nil) = CameraSelection(link, among: [node, Self.right]) else {
                Issue.record("\(link) wasn't found")
                continue
            }
            #expect(found == node)
        }
    }

    struct Move: Sendable, CustomTestStringConvertible {
        let name: String
        let last: CameraFingerprint?
        let now: CameraFingerprint
        var own = true
        /// Part of the refusal's cause; nil: not refused.
        let refused: String?
        var testDescription: String { name }
    }

    private static func seen(_ serial: String?, _ port: String, _ model: String = "C920") -> CameraFingerprint {
        CameraFingerprint(serial: serial, port: port, model: model)
    }

    @Test(arguments: [
        Move(name: "the first take", last: nil, now: seen("A", "1"), refused: nil),
        Move(name: "nothing changed", last: seen("A", "1"), now: seen("A", "1"), refused: nil),
        Move(name: "the same camera in another port", last: seen("A", "1"), now: seen("A", "2"), refused: nil),
        Move(
            name: "its twin is in the port", last: seen("A", "1"), now: seen("B", "1"),
            refused: "serial number A, now it is B"),
        Move(
            name: "another model is in the port", last: seen(nil, "1"), now: seen(nil, "1", "Brio"),
            refused: "was 'C920', now it is 'Brio'"),
        Move(
            name: "a name that now means another port", last: seen(nil, "1"), now: seen(nil, "2"), own: false,
            refused: "can't be told apart"),
        Move(
            name: "a serial number that all units share", last: seen("X", "1"), now: seen("X", "2"), own: false,
            refused: "can't be told apart"),
    ])
    func `C1 #23 an identity that moved since the last take is refused`(_ row: Move) {
        let move = CameraMove(last: row.last, now: row.now, hasOwnSerial: row.own)
        guard let expected = row.refused else {
            if case .refused(let cause) = move { Issue.record("refused: \(cause)") }
            return
        }
        guard case .refused(let cause) = move else {
            Issue.record("not refused")
            return
        }
        #expect(cause.contains(expected))
    }

    @Test func `C1 #25 units that share a serial number are told apart by their ports`() {
        let twins = [Self.node(0, serial: "0001", port: "1"), Self.node(2, serial: "0001", port: "2")]
        let names = twins.map { $0.identity(among: twins) }
        #expect(names.allSatisfy { $0.contains("/by-path/") } && Set(names).count == 2)
        guard case .refused(let cause, let cure) = CameraSelection("0001", among: twins) else {
            Issue.record("a name of two was taken")
            return
        }
        #expect(cause == "'0001' fits 2 cameras")
        for name in names { #expect(cure.contains(name)) }
        #expect(CameraReturn(of: twins[0].fingerprint, hadOwnSerial: false, among: twins) == .back(twins[0]))
        // The second one alone isn't the first one that came back.
        #expect(CameraReturn(of: twins[0].fingerprint, hadOwnSerial: false, among: [twins[1]]) == .away)
    }

    @Test(arguments: [
        "AAA", "/dev/v4l/by-id/usb-046d_C920_AAA-video-index0", "usb-046d_C920_AAA-video-index0",
        "/dev/v4l/by-path/pci-0000:00:14.0-usb-0:1:1.0-video-index0", "usb-0000:00:14.0-1", "*C920_AAA*", "*14.0-1",
    ])
    func `C1 #26 a camera may be named by link, serial number, bus or a pattern`(name: String) {
        guard case .found(let node, nil) = CameraSelection(name, among: [Self.left, Self.right]) else {
            Issue.record("not found")
            return
        }
        #expect(node == Self.left)
    }

    @Test func `A camera comes back to another port and under another number`() {
        let moved = Self.node(4, serial: "AAA", port: "3")
        #expect(
            CameraReturn(of: Self.left.fingerprint, hadOwnSerial: true, among: [Self.right, moved]) == .back(moved))
        #expect(CameraReturn(of: Self.left.fingerprint, hadOwnSerial: true, among: [Self.right]) == .away)
        let depth = Self.node(5, serial: "AAA", port: "3", index: 2)
        #expect(CameraReturn(of: depth.fingerprint, hadOwnSerial: true, among: [moved, depth]) == .back(depth))
        let stranger = Self.node(4, serial: "CCC", port: "1")
        #expect(CameraReturn(of: Self.left.fingerprint, hadOwnSerial: true, among: [stranger]) == .another(stranger))
    }

    @Test func `What is remembered survives the program, and another name in the configuration is no surprise`()
        async throws
    {
        let folder = try TemporaryFolder()
        let memory = CameraMemory(path: "\(folder.path)/cameras.json")
        let id = StreamID(unchecked: "cam")
        func camera(_ name: String, _ node: CameraNode) -> V4L2Camera {
            var options = V4L2Camera.Options(device: name)
            options.memory = CameraMemory(path: memory.path)
            let machine = ScriptedMachine(nodes: [node], [DriverScript([.frame(sequence: 0)])])
            return V4L2Camera(id, options, machine: machine.machine)
        }
        let port = "usb-0000:00:14.0-1"
        let twin = Self.node(0, serial: "BBB", port: "1")
        let first = camera(port, Self.left)
        _ = try await first.open()
        try await first.start(EmulatedCollector())
        await first.close()
        await #expect {
            _ = try await camera(port, twin).open()
        } throws: {
            "\($0)".contains("serial number AAA, now it is BBB") && "\($0)".contains("devices --accept cam")
        }
        let other = camera("BBB", twin)
        _ = try await other.open()
        await other.close()
        try memory.forget(["cam"])
        let accepted = camera(port, twin)
        _ = try await accepted.open()
        await accepted.close()
    }
}
