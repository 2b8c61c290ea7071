internal import Platform
package import Protocol

/// Describes the attached cameras for a person who has to choose one.
package enum AttachedCameras {
    /// May block for a moment: each node is opened.
    static func all() -> [DeviceList.Attached] {
        let nodes = CameraNodes.all()
        return nodes.filter { $0.capturesVideo || $0.problem != nil }.map { node in
            let holders = DeviceHolder.of(node.path).map(\.description)
            guard let port = try? V4L2Node(path: node.path) else {
                return entry(node, among: nodes, port: nil, holders: holders)
            }
            defer { port.close() }
            return entry(node, among: nodes, port: port, holders: holders)
        }
    }

    /// One camera; `port` is its open node, nil when it can't be opened, and `holders` are who has it open, in words.
    package static func entry(
        _ node: CameraNode, among nodes: [CameraNode], port: (any V4L2Port)?, holders: [String]
    ) -> DeviceList.Attached {
        let identity = node.identity(among: nodes)
        var label = "\(node.card) (now \(node.path))"
        if let serial = node.serial { label += ", serial \(serial)" }
        var camera = AttachedCamera(
            node: node.path, model: node.card, driver: node.driver, serial: node.serial, bus: node.bus,
            names: names(node, nodes))
        camera.usb = node.usb.map {
            AttachedCamera.USB(
                bus: $0.bus, port: $0.port, megabitsPerSecond: $0.speed, id: "\($0.vendor):\($0.product)",
                release: $0.release)
        }
        camera.holders = holders
        var entry = DeviceList.Attached(
            kind: V4L2CameraKind.name, identity: identity, label: label, abilities: [], problem: node.problem)
        if let port {
            let offers = port.offers()
            entry.abilities = V4L2Choice.abilities(offers)
            camera.formats = offers.map(format)
            camera.controls = port.controls().map { control($0, port) }
            camera.configuration = node.capturesVideo ? line(identity, node, offers) : nil
        }
        entry.camera = camera
        return entry
    }

    /// The names that only this camera has, and its node's last.
    private static func names(_ node: CameraNode, _ nodes: [CameraNode]) -> [String] {
        let others = nodes.filter { $0.path != node.path && $0.capturesVideo }
        let serial = node.serial.flatMap { serial in
            others.contains { $0.serial == serial } ? nil : serial
        }
        let taken = Set(others.flatMap { $0.identities + [$0.card] })
        let own = (node.identities + [node.card]).filter { !taken.contains($0) && !$0.isEmpty }
        return ([serial].compactMap { $0 } + own).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private static func format(_ offer: V4L2Offer) -> AttachedCamera.Format {
        AttachedCamera.Format(
            fourCC: "\(offer.fourCC)", format: offer.fourCC.word,
            sizes: offer.sizes.map { size in
                AttachedCamera.Size(
                    width: size.width.lowerBound, height: size.height.lowerBound,
                    widthTo: size.width.count > 1 ? size.width.upperBound : nil,
                    heightTo: size.height.count > 1 ? size.height.upperBound : nil, rates: size.rates)
            })
    }

    private static func control(_ control: V4L2Control, _ port: any V4L2Port) -> AttachedCamera.Control {
        var menu: [String: String]?
        if control.kind == .menu {
            menu = Dictionary(uniqueKeysWithValues: control.menu.map { ("\($0.key)", $0.value) })
        }
        return AttachedCamera.Control(
            name: control.name, value: try? port.value(of: control), minimum: control.range.lowerBound,
            maximum: control.range.upperBound, fallback: control.fallback, menu: menu, isReadOnly: control.isReadOnly,
            isInactive: control.isInactive)
    }

    // MARK: A line to paste

    /// What most takes want: the largest picture up to 1920x1080 that comes at 30 frames/s, compressed by the camera.
    private static func line(_ identity: String, _ node: CameraNode, _ offers: [V4L2Offer]) -> String? {
        let modes = offers.flatMap { offer -> [Mode] in
            guard let word = offer.fourCC.word else { return [] }
            return offer.sizes.map { Mode(word, $0) }
        }
        guard let best = modes.max(by: { $0.score.lexicographicallyPrecedes($1.score) }) else { return nil }
        let id = String(V4L2Control.name(of: "cam \(node.card)").prefix(40))
        let rate = V4L2Choice.rate(best.rate)
        return "{ id: \"\(id)\", kind: \"v4l2\", device: \"\(identity)\", format: \"\(best.format)\", "
            + "width: \(best.width), height: \(best.height), rate: \(rate) },"
    }

    private struct Mode {
        let format: String
        let width: Int
        let height: Int
        let rate: Double

        init(_ format: String, _ size: V4L2Offer.Size) {
            self.format = format
            width = min(size.width.upperBound, max(size.width.lowerBound, 1920))
            height = min(size.height.upperBound, max(size.height.lowerBound, 1080))
            // The rate next to 30, which is what others' tools expect.
            rate = size.rates.min { abs($0 - 30) < abs($1 - 30) } ?? 30
        }

        /// Larger is better: fast enough, not too large, compressed, and then the size.
        var score: [Double] {
            let ranks: [String: Double] = ["mjpeg": 3, "h264": 2, "hevc": 2, "nv12": 1, "yuyv": 1, "yuv420p": 1]
            let rank = ranks[format] ?? 0
            let pixels = Double(width) * Double(height)
            return [min(rate, 30), pixels <= 1920 * 1080 ? 1 : 0, min(pixels, 1920 * 1080), rank]
        }
    }
}
