internal import Glibc
internal import Platform
internal import Protocol
internal import Timing

/// A camera that is open and has agreed on what it delivers; owned by the camera's thread.
struct OpenCamera {
    /// The fewest that keep a driver busy while one is copied; 8 are 266 ms at 30 frames/s.
    private static let wantedBuffers = 8

    let port: any V4L2Port
    let node: CameraNode
    let fingerprint: CameraFingerprint
    let hasOwnSerial: Bool
    let shape: FrameIntake.Shape
    let buffers: Int
    /// Asked against got, in sentences.
    let differences: [String]
    /// Megabytes a second that it may ask of its bus.
    let megabytes: Double?
    /// A format is agreed on; without one the faults can't know the need.
    private let stream: StreamID

    /// Opens a node and sets picture, rate, controls and buffers.
    ///
    /// All `nodes` that are there tell this one from them; `notes` are findings that were made on the way to it.
    init(
        _ node: CameraNode, among nodes: [CameraNode], for stream: StreamID, _ wish: V4L2Choice.Wish,
        notes: [String] = [], connect: V4L2Connect
    ) throws(CameraTrouble) {
        let faults = CameraFaults(stream: stream, node: node)
        let port: any V4L2Port
        do throws(Errno) { port = try connect(node.path) } catch { throw faults.trouble(error, .open) }
        do throws(CameraTrouble) {
            try self.init(port, node, among: nodes, for: stream, wish, notes)
        } catch {
            port.close()
            throw error
        }
    }

    private init(
        _ port: any V4L2Port, _ node: CameraNode, among nodes: [CameraNode], for stream: StreamID,
        _ wish: V4L2Choice.Wish, _ notes: [String]
    ) throws(CameraTrouble) {
        let faults = CameraFaults(stream: stream, node: node, own: port.descriptor)
        let fourCC = try Self.choose(wish, port, node, faults)
        let got: V4L2Picture
        do throws(Errno) {
            got = try port.setPicture(V4L2Picture(fourCC: fourCC, width: wish.width, height: wish.height))
        } catch { throw faults.trouble(error, .format) }
        guard got.fourCC == fourCC, let encoding = got.fourCC.encoding, got.width > 0, got.height > 0 else {
            throw faults.refused(
                "'\(node.card)' answers \(got.fourCC) \(got.width)x\(got.height) when asked for \(fourCC)",
                cure: "choose a size and format that `downbeat-agent devices` lists")
        }
        // Before the rate: a driver may check the rate against the exposure.
        let controls: CameraControls.Result
        do throws(CameraControls.Refused) { controls = try CameraControls.apply(wish.controls, to: port) } catch {
            throw faults.refused(error.cause, cure: error.cure)
        }
        let rate: Double?
        do throws(Errno) { rate = try port.setRate(wish.rate) } catch { throw faults.trouble(error, .rate) }
        let (buffers, flags): (Int, UInt32)
        do throws(Errno) { (buffers, flags) = try port.mapBuffers(Self.wantedBuffers) } catch {
            throw faults.trouble(error, .buffers)
        }
        guard buffers >= 2 else { throw faults.trouble(Errno(rawValue: ENOMEM), .buffers) }
        let arrangement = RawArrangement(got.fourCC)
        let whole = arrangement.map { $0.sourceSize(got) } ?? Self.wholeSize(encoding, got)
        guard arrangement == nil || whole != nil else {
            throw faults.refused(
                "'\(node.card)' answers a row of \(got.bytesPerLine) bytes for \(got.width) pixels of \(got.fourCC)",
                cure: "set 'format' to another one that `downbeat-agent devices` lists")
        }
        let fingerprint = node.fingerprint
        hasOwnSerial = fingerprint.hasOwnSerial(among: nodes)
        differences = Self.differences(wish, got, rate) + controls.findings
        var findings = notes + differences
        if let serial = node.serial, !hasOwnSerial {
            findings.append(
                "more than one camera has the serial number \(serial): this one is told from them by its port")
        }
        let stamp = BufferStamp(flags: flags)
        var description = StreamDescription(
            id: stream, kind: .video, deviceKind: V4L2CameraKind.name, deviceIdentity: node.identity(among: nodes),
            label: "\(node.card), \(got.fourCC.word ?? encoding.rawValue) \(got.width)x\(got.height)"
                + (rate.map { " at \(V4L2Choice.rate($0)) frames/s" } ?? ""),
            nominalRate: rate,
            video: VideoFormat(
                encoding: encoding, width: got.width, height: got.height,
                bytesPerLine: whole == nil ? 0 : arrangement?.bytesPerLine(got) ?? got.bytesPerLine),
            capabilities: StreamCapabilities(
                producesFile: true, supportsPreciseTimestamps: stamp.clock == .monotonic),
            timestampSource: stamp.promise.words(stamp.moment))
        description.lossMethod = .sequence
        description.settings = Self.settings(wish, got, rate) + controls.settings
        description.findings = findings.isEmpty ? nil : findings
        self.port = port
        self.node = node
        self.fingerprint = fingerprint
        self.buffers = buffers
        self.stream = stream
        shape = FrameIntake.Shape(
            description: description, wholeSize: whole, askedRate: wish.rate, source: arrangement == nil ? nil : got)
        let size = whole ?? got.sizeImage
        megabytes = rate.flatMap { size > 0 ? Double(size) * $0 / 1e6 : nil }
        if let usb = node.usb { BusLoad.take(usb.bus, stream.rawValue, megabytes: megabytes ?? 0) }
    }

    func close() {
        port.close()
        if let usb = node.usb { BusLoad.free(usb.bus, stream.rawValue) }
    }

    func trouble(_ error: Errno, _ operation: V4L2Fault.Operation) -> CameraTrouble {
        CameraFaults(stream: stream, node: node, own: port.descriptor, megabytes: megabytes).trouble(error, operation)
    }

    // MARK: Choosing

    private static func choose(
        _ wish: V4L2Choice.Wish, _ port: any V4L2Port, _ node: CameraNode, _ faults: CameraFaults
    ) throws(CameraTrouble) -> FourCC {
        let offers = port.offers()
        if let fourCC = V4L2Choice.fourCC(for: wish, among: offers) { return fourCC }
        let names = offers.map { $0.fourCC.word ?? "\($0.fourCC)" }.joined(separator: ", ")
        throw faults.refused(
            wish.format == .auto
                ? "'\(node.card)' offers no format that can be recorded (it has \(names))"
                : "'\(node.card)' doesn't offer '\(wish.format.rawValue)' (it has \(names))",
            cure: wish.format == .auto ? "use another camera" : "set 'format' to 'auto' or to one of these")
    }

    private static func wholeSize(_ encoding: VideoFormat.Encoding, _ picture: V4L2Picture) -> Int? {
        let lines = picture.bytesPerLine.multipliedReportingOverflow(by: picture.height)
        guard !lines.overflow else { return nil }
        return switch encoding {
        case .yuyv: lines.partialValue
        case .nv12, .yuv420p: lines.partialValue / 2 * 3
        case .mjpeg, .h264, .hevc: nil
        }
    }

    // MARK: Asked against got

    private static func settings(
        _ wish: V4L2Choice.Wish, _ got: V4L2Picture, _ rate: Double?
    ) -> [StreamSetting] {
        [
            StreamSetting("format", asked: wish.format == .auto ? nil : wish.format.rawValue, got: got.fourCC.word),
            StreamSetting("size", asked: "\(wish.width)x\(wish.height)", got: "\(got.width)x\(got.height)"),
            StreamSetting("rate", asked: V4L2Choice.rate(wish.rate), got: rate.map(V4L2Choice.rate)),
        ]
    }

    private static func differences(_ wish: V4L2Choice.Wish, _ got: V4L2Picture, _ rate: Double?) -> [String] {
        var notes: [String] = []
        if got.width != wish.width || got.height != wish.height {
            notes.append("asked for \(wish.width)x\(wish.height), got \(got.width)x\(got.height)")
        }
        if let rate {
            if abs(rate - wish.rate) > 0.01 * wish.rate {
                notes.append(
                    "asked for \(V4L2Choice.rate(wish.rate)) frames/s, got \(V4L2Choice.rate(rate)) frames/s")
            }
        } else {
            notes.append("asked for \(V4L2Choice.rate(wish.rate)) frames/s, and the driver can't be told a rate")
        }
        return notes
    }
}

/// An error, and what a running take makes of it.
struct CameraTrouble: Error {
    var kind: CameraSupervisor.Trouble
    var error: DeviceError
}

/// Makes sentences of errnos for one node.
struct CameraFaults {
    var stream: StreamID
    var node: CameraNode
    /// A descriptor of this program that doesn't count as a holder.
    var own: Int32?
    var megabytes: Double?

    func trouble(_ error: Errno, _ operation: V4L2Fault.Operation) -> CameraTrouble {
        var facts = V4L2Fault.Facts()
        facts.holder = { DeviceHolder.words(for: node.path, except: own) }
        facts.group = { NodeGroup.name(of: node.path) }
        facts.bandwidth = { bandwidth }
        let fault = V4L2Fault(error, during: operation, path: node.path, name: node.card, facts: facts)
        return CameraTrouble(kind: fault.trouble, error: fault.error(for: stream))
    }

    var unplugged: String { trouble(.noDevice, .dequeue).error.description }

    func refused(_ cause: String, cure: String) -> CameraTrouble {
        CameraTrouble(
            kind: .broken, error: DeviceError(.unsupported, stream: stream, cause: cause, cure: cure))
    }

    /// "it asks for up to 18 MB/s on bus 1 (480 Mbit/s), where cam_left asks for 18 MB/s already".
    private var bandwidth: String? {
        guard let megabytes else { return nil }
        let need = "it asks for up to \(Self.whole(megabytes)) MB/s"
        guard let usb = node.usb else { return need }
        let others = BusLoad.others(on: usb.bus, than: stream.rawValue).map {
            "\($0.stream) asks for \(Self.whole($0.megabytes)) MB/s"
        }
        let rest = others.isEmpty ? "" : ", where \(others.joined(separator: " and ")) already"
        return "\(need) on bus \(usb.bus) (\(Self.whole(usb.speed)) Mbit/s)\(rest)"
    }

    private static func whole(_ value: Double) -> String {
        let rounded = value.rounded(.up)
        return rounded.isFinite && abs(rounded) < 1e15 ? "\(Int64(rounded))" : "\(value)"
    }
}
