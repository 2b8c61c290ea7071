/// Who a camera is: what is remembered of it from one take to the next, and between unplug and replug.
package struct CameraFingerprint: Codable, Sendable, Hashable {
    /// The serial number; nil when the hardware has none.
    package var serial: String?
    /// The port path and the node's place in its device; never a node's number.
    package var port: String
    /// Vendor, product and name.
    package var model: String

    package init(serial: String?, port: String, model: String) {
        self.serial = serial
        self.port = port
        self.model = model
    }

    /// Whether no other of these cameras has the same serial number.
    func hasOwnSerial(among nodes: [CameraNode]) -> Bool {
        guard let serial else { return false }
        // A camera's own metadata and depth nodes have its serial number too, but its bus as well.
        let buses = Set(nodes.filter { $0.serial == serial && $0.capturesVideo }.map(\.bus))
        return buses.count <= 1
    }
}

/// Finds the camera again that was unplugged.
///
/// Pure. A serial number that is one of a kind says who it is, whatever port it comes back to; without one it must be the
/// same model in the same port.
package enum CameraReturn: Sendable, Hashable {
    case back(CameraNode)
    /// Something else is in its port.
    case another(CameraNode)
    case away

    package init(of camera: CameraFingerprint, hadOwnSerial: Bool, among nodes: [CameraNode]) {
        let cameras = nodes.filter(\.capturesVideo)
        if hadOwnSerial, let serial = camera.serial {
            let same = cameras.filter { $0.serial == serial && $0.index == Self.index(of: camera, in: cameras) }
            if same.count == 1 {
                self = .back(same[0])
                return
            }
        }
        guard let inPort = cameras.first(where: { $0.fingerprint.port == camera.port }) else {
            self = .away
            return
        }
        let found = inPort.fingerprint
        self = found.model == camera.model && found.serial == camera.serial ? .back(inPort) : .another(inPort)
    }

    /// The node's place in its device, which the port's text carries.
    private static func index(of camera: CameraFingerprint, in nodes: [CameraNode]) -> Int {
        guard let word = camera.port.firstRange(of: " node ") else { return 0 }
        return Int(camera.port[word.upperBound...]) ?? 0
    }
}

/// Whether a configured name means the camera that it meant in the last take.
///
/// Pure. Two cameras of one model that were swapped look like a good take; so what was there last is remembered, and what
/// isn't the same is refused until somebody says that it is meant.
package enum CameraMove: Sendable, Hashable {
    case same
    /// The camera is the same, and in another port.
    case otherPort(from: String)
    case refused(cause: String)

    /// `last` is nil in the first take; `hasOwnSerial` is whether no other attached camera has the serial number of `now`.
    package init(last: CameraFingerprint?, now: CameraFingerprint, hasOwnSerial: Bool) {
        guard let last else {
            self = .same
            return
        }
        if let old = last.serial, let new = now.serial, old != new {
            self = .refused(
                cause: "in the last take this was the camera with serial number \(old), now it is \(new) (\(now.model))"
            )
        } else if last.model != now.model {
            self = .refused(cause: "in the last take this was '\(last.model)', now it is '\(now.model)'")
        } else if last.port == now.port {
            self = .same
        } else if hasOwnSerial, last.serial == now.serial {
            self = .otherPort(from: last.port)
        } else {
            self = .refused(
                cause:
                    "in the last take this was the camera in port \(last.port), now it is the one in \(now.port), and "
                    + "cameras without a serial number of their own can't be told apart")
        }
    }
}
