/// What is known of one video node of the machine, opened or not.
package struct CameraNode: Sendable, Hashable {
    /// "/dev/video0": where it is now, never who it is.
    package var path: String
    package var card: String
    package var bus: String
    /// The serial number that the hardware itself has; nil when it has none.
    package var serial: String?
    /// The links below /dev/v4l/by-id and /dev/v4l/by-path.
    package var links: [String]
    /// Whether frames can be captured from it; a camera's metadata node can't.
    package var capturesVideo: Bool
    /// Why it couldn't be asked; nil when all is well.
    package var problem: String?
    package var driver: String
    /// Which of its device's nodes it is: a camera may have one for colour and one for depth.
    package var index: Int
    /// Where it is on USB; nil when it isn't.
    package var usb: USBPlace?

    package init(
        path: String, card: String, bus: String, serial: String? = nil, links: [String] = [],
        capturesVideo: Bool = true, problem: String? = nil, driver: String = "", index: Int = 0, usb: USBPlace? = nil
    ) {
        self.path = path
        self.card = card
        self.bus = bus
        self.serial = serial
        self.links = links
        self.capturesVideo = capturesVideo
        self.problem = problem
        self.driver = driver
        self.index = index
        self.usb = usb
    }

    /// Who the hardware is, however it is named today.
    package var fingerprint: CameraFingerprint {
        CameraFingerprint(
            serial: serial, port: index == 0 ? bus : "\(bus) node \(index)",
            model: usb.map { "\($0.vendor):\($0.product) \(card)" } ?? card)
    }

    /// Names that tell this node from others, the most stable first.
    ///
    /// The link by-id is worth something only where the hardware has a serial number: without one it is the same for
    /// all cameras of a model.
    var identities: [String] {
        let byID = serial == nil ? [] : links.filter { $0.contains("/by-id/") }
        return byID + links.filter { $0.contains("/by-path/") } + (bus.isEmpty ? [] : [bus])
    }

    /// The most stable name that no other node has; the path when there is none.
    package func identity(among nodes: [CameraNode]) -> String {
        let others = nodes.filter { $0.path != path && $0.capturesVideo }.flatMap(\.identities)
        return identities.first { !others.contains($0) } ?? path
    }
}

/// Finds the node that a configuration means.
///
/// Pure.
package enum CameraSelection: Sendable, Hashable {
    /// `warning`: the name may mean another camera tomorrow.
    case found(CameraNode, warning: String?)
    case refused(cause: String, cure: String)
    case missing(cause: String, cure: String)

    /// - Parameters:
    ///   - name: a link, a node, a serial number, bus information or a card's name; `*` stands for any text.
    ///   - resolved: what the name points to when it is a path.
    ///   - nodes: all that are there.
    package init(_ name: String, resolved: String? = nil, among nodes: [CameraNode]) {
        let isPath = name.hasPrefix("/")
        let fits: (CameraNode) -> Bool = { node in
            if isPath { return node.path == name || node.path == resolved || node.links.contains(name) }
            return node.serial == name || node.bus == name || node.card == name
                || node.links.contains { $0.hasSuffix("/\(name)") }
                || (name.contains("*") && ([node.card, node.bus] + node.links).contains { Glob.fits($0, name) })
        }
        let all = nodes.filter(fits)
        let capturing = all.filter(\.capturesVideo)
        let cameras = nodes.filter(\.capturesVideo)
        switch (capturing.count, all.first) {
        case (1, _):
            let node = capturing[0]
            let identity = node.identity(among: nodes)
            let isNumber = isPath && name.hasPrefix("/dev/video") && identity != name
            self = .found(
                node,
                warning: isNumber
                    ? "'\(name)' is the order of plugging in and may be another camera after a restart; "
                        + "name it '\(identity)'"
                    : nil)
        case (0, let node?):
            self = .refused(
                cause: node.problem ?? "\(node.path) (\(node.card)) gives no video, it carries the camera's metadata",
                cure: node.problem == nil
                    ? "name \(Self.names(cameras, nodes))" : "name another camera, or mend what is wrong with this one")
        case (0, nil):
            self = .missing(
                cause: "no camera '\(name)' is attached",
                cure: cameras.isEmpty ? "plug it in" : "plug it in, or name \(Self.names(cameras, nodes))")
        default:
            self = .refused(
                cause: "'\(name)' fits \(capturing.count) cameras", cure: "name \(Self.names(capturing, nodes))")
        }
    }

    private static func names(_ cameras: [CameraNode], _ nodes: [CameraNode]) -> String {
        let names = cameras.map { "'\($0.identity(among: nodes))'" }
        return names.count == 1 ? names[0] : "one of \(names.joined(separator: ", "))"
    }
}

/// Where a camera is on USB.
package struct USBPlace: Sendable, Hashable {
    /// The bus whose bandwidth it shares.
    package var bus: Int
    /// "1-2.3": the ports from the root hub on.
    package var port: String
    /// Mbit/s of its own link.
    package var speed: Double
    /// Four hexadecimal digits.
    package var vendor: String
    /// Four hexadecimal digits.
    package var product: String
    /// The device's release number, in which makers count their firmware.
    package var release: String?

    package init(
        bus: Int, port: String, speed: Double, vendor: String, product: String, release: String? = nil
    ) {
        self.bus = bus
        self.port = port
        self.speed = speed
        self.vendor = vendor
        self.product = product
        self.release = release
    }
}

/// A pattern with `*` for any text.
enum Glob {
    static func fits(_ text: String, _ pattern: String) -> Bool {
        let parts = pattern.split(separator: "*", omittingEmptySubsequences: false)
        guard parts.count > 1, let first = parts.first, let last = parts.last else { return text == pattern }
        guard text.hasPrefix(first) else { return false }
        var rest = text.dropFirst(first.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let place = rest.firstRange(of: part) else { return false }
            rest = rest[place.upperBound...]
        }
        return rest.hasSuffix(last)
    }
}
