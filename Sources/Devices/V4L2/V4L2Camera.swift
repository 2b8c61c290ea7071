internal import CV4L
internal import Glibc
internal import Platform
package import Protocol
internal import Timing

/// A camera of the kernel: mapped buffers, the driver's stamps, losses by the driver's counter.
///
/// Concurrency: all of it runs on its own event loop's thread, which only waits for the camera; the sink is called there.
package actor V4L2Camera: CaptureDevice {
    package struct Options: Sendable, Hashable {
        /// A link below /dev/v4l, a serial number, bus information or a card's name; a node with a warning.
        package var device: String
        package var wish = V4L2Choice.Wish()

        package init(device: String) { self.device = device }
    }

    private struct Opened {
        let port: any V4L2Port
        let node: CameraNode
        let format: VideoFormat
        let rate: Double?
        let buffers: Int
        /// Bytes of a whole picture; nil for compressed ones.
        let wholeSize: Int?
        let notes: [String]
    }

    private struct Run {
        let sink: any SampleSink
        var tracker: SequenceTracker
        var stamper: FrameStamper
        /// Frames lost since the last one that was handed over.
        var lost: Int64 = 0
        var toldDamage = false
    }

    /// The fewest that keep a driver busy while one is copied; 8 are 266 ms at 30 frames/s.
    private static let wantedBuffers = 8

    package nonisolated let stream: StreamID
    private let options: Options
    private let loop: EventLoop
    private let log: Log
    private let connect: V4L2Connect
    private let nodes: @Sendable () -> [CameraNode]
    private var opened: Opened?
    private var run: Run?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ stream: StreamID, _ options: Options) {
        self.init(stream, options, nodes: { CameraNodes.all() }) { path throws(Errno) in try V4L2Node(path: path) }
    }

    /// With nodes and calls of one's own: a script in place of the kernel.
    package init(
        _ stream: StreamID, _ options: Options, nodes: @escaping @Sendable () -> [CameraNode],
        connect: @escaping V4L2Connect
    ) {
        self.stream = stream
        self.options = options
        self.nodes = nodes
        self.connect = connect
        loop = EventLoop(name: "cam-\(stream)")
        log = Log("camera \(stream)")
    }

    // MARK: Life

    package func open() throws -> StreamDescription {
        close()
        let (node, identity, warning) = try find()
        let port: any V4L2Port
        do throws(Errno) { port = try connect(node.path) } catch { throw fault(error, .open, node) }
        do {
            let (opened, stamp) = try negotiate(port, node, warning)
            self.opened = opened
            for note in opened.notes { log.warning(note) }
            return description(opened, identity, stamp)
        } catch {
            port.close()
            throw error
        }
    }

    package func start(_ sink: any SampleSink) throws {
        guard let opened else {
            throw DeviceError(.notFound, stream: stream, cause: "the camera isn't open", cure: "open it first")
        }
        precondition(run == nil, "\(stream) was started twice")
        run = Run(
            sink: sink, tracker: SequenceTracker(rate: opened.rate), stamper: FrameStamper(rate: opened.rate))
        do throws(Errno) {
            for index in 0..<opened.buffers { try opened.port.queue(index) }
        } catch {
            stop()
            throw fault(error, .queue, opened.node)
        }
        do throws(Errno) { try opened.port.streamOn() } catch {
            stop()
            throw fault(error, .streamOn, opened.node)
        }
        for note in opened.notes { sink.report(.note(note)) }
        do {
            try loop.watch(opened.port.descriptor, for: .readable) { [weak self] _ in
                self?.assumeIsolated { $0.drain() }
            }
        } catch {
            stop()
            throw DeviceError(
                .inputOutput, stream: stream, cause: "the camera can't be waited for: \(error)",
                cure: "restart the program")
        }
    }

    package func stop() {
        guard let run, let opened else { return }
        self.run = nil
        loop.unwatch(opened.port.descriptor)
        opened.port.streamOff()
        if run.lost > 0 { run.sink.report(.lost(count: run.lost, before: HostClock.now)) }
    }

    package func close() {
        stop()
        opened?.port.close()
        opened = nil
    }

    // MARK: Opening

    private func find() throws(DeviceError) -> (CameraNode, identity: String, warning: String?) {
        let nodes = nodes()
        switch CameraSelection(options.device, resolved: CameraNodes.resolve(options.device), among: nodes) {
        case .found(let node, let warning):
            return (node, node.identity(among: nodes), warning)
        case .refused(let cause, let cure):
            throw DeviceError(.unsupported, stream: stream, cause: cause, cure: cure)
        case .missing(let cause, let cure):
            throw DeviceError(.notFound, stream: stream, cause: cause, cure: cure)
        }
    }

    private func negotiate(
        _ port: any V4L2Port, _ node: CameraNode, _ warning: String?
    ) throws(DeviceError) -> (Opened, BufferStamp) {
        let wish = options.wish
        let offers = port.offers()
        guard let fourCC = V4L2Choice.fourCC(for: wish, among: offers) else {
            let names = offers.map { $0.fourCC.encoding?.rawValue ?? "\($0.fourCC)" }.joined(separator: ", ")
            throw DeviceError(
                .unsupported, stream: stream,
                cause: wish.format == .auto
                    ? "'\(node.card)' offers no format that can be recorded (it has \(names))"
                    : "'\(node.card)' doesn't offer '\(wish.format.rawValue)' (it has \(names))",
                cure: wish.format == .auto ? "use another camera" : "set 'format' to 'auto' or to one of these")
        }
        let got: V4L2Picture
        do throws(Errno) {
            got = try port.setPicture(V4L2Picture(fourCC: fourCC, width: wish.width, height: wish.height))
        } catch { throw fault(error, .format, node, port) }
        guard got.fourCC == fourCC, let encoding = got.fourCC.encoding, got.width > 0, got.height > 0 else {
            throw DeviceError(
                .unsupported, stream: stream,
                cause: "'\(node.card)' answers \(got.fourCC) \(got.width)x\(got.height) when asked for \(fourCC)",
                cure: "choose a size and format that `downbeat-agent devices` lists")
        }
        let rate: Double?
        do throws(Errno) { rate = try port.setRate(wish.rate) } catch { throw fault(error, .rate, node, port) }
        let (buffers, flags): (Int, UInt32)
        do throws(Errno) { (buffers, flags) = try port.mapBuffers(Self.wantedBuffers) } catch {
            throw fault(error, .buffers, node, port)
        }
        guard buffers >= 2 else { throw fault(Errno(rawValue: ENOMEM), .buffers, node, port) }
        let whole = Self.wholeSize(encoding, got)
        let format = VideoFormat(
            encoding: encoding, width: got.width, height: got.height,
            bytesPerLine: whole == nil ? 0 : got.bytesPerLine)
        let opened = Opened(
            port: port, node: node, format: format, rate: rate, buffers: buffers, wholeSize: whole,
            notes: [warning].compactMap { $0 } + Self.differences(wish, got, rate))
        return (opened, BufferStamp(flags: flags))
    }

    /// Asked against got, in words.
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

    private static func wholeSize(_ encoding: VideoFormat.Encoding, _ picture: V4L2Picture) -> Int? {
        let lines = picture.bytesPerLine.multipliedReportingOverflow(by: picture.height)
        guard !lines.overflow else { return nil }
        return switch encoding {
        case .yuyv: lines.partialValue
        case .nv12, .yuv420p: lines.partialValue / 2 * 3
        case .mjpeg, .h264, .hevc: nil
        }
    }

    private func description(_ opened: Opened, _ identity: String, _ stamp: BufferStamp) -> StreamDescription {
        let format = opened.format
        let rate = opened.rate.map { " at \(V4L2Choice.rate($0)) frames/s" } ?? ""
        let asked = opened.notes.filter { $0.hasPrefix("asked") }
        let difference = asked.isEmpty ? "" : " (\(asked.joined(separator: "; ")))"
        return StreamDescription(
            id: stream, kind: .video, deviceKind: V4L2CameraKind.name, deviceIdentity: identity,
            label:
                "\(opened.node.card), \(format.encoding.rawValue) \(format.width)x\(format.height)\(rate)\(difference)",
            nominalRate: opened.rate, video: format,
            capabilities: StreamCapabilities(
                producesFile: true, supportsPreciseTimestamps: stamp.clock == .monotonic),
            timestampSource: stamp.words)
    }

    private func fault(
        _ error: Errno, _ operation: V4L2Fault.Operation, _ node: CameraNode, _ port: (any V4L2Port)? = nil
    ) -> DeviceError {
        let own = (port ?? opened?.port)?.descriptor
        return V4L2Fault(
            error, during: operation, path: node.path, name: node.card, demand: demand,
            holder: { DeviceHolder.words(for: node.path, except: own) }
        ).error(for: stream)
    }

    /// Megabytes a second of an uncompressed stream.
    private var demand: Double? {
        guard let opened, let whole = opened.wholeSize, let rate = opened.rate else { return nil }
        return Double(whole) * rate / 1e6
    }

    // MARK: Frames, on the loop's thread

    private func drain() {
        guard var current = run, let opened else { return }
        // At most what was queued at the wake-up, so that a stop gets its turn.
        for _ in 0..<opened.buffers {
            do throws(Errno) {
                guard let filled = try opened.port.dequeue() else { break }
                handle(filled, opened, &current)
                try opened.port.queue(filled.index)
            } catch {
                run = current
                fail(error, opened)
                return
            }
        }
        run = current
    }

    private func handle(_ filled: V4L2Filled, _ opened: Opened, _ run: inout Run) {
        let arrival = HostClock.now
        switch run.tracker.next(filled.sequence, arrival: arrival) {
        case .continuous: break
        case .lost(let count): run.lost += count
        case .newEpoch: run.sink.report(.note("the driver's frame counter began anew"))
        case .noCounter:
            run.sink.report(.note("the driver doesn't count frames: losses can't be told"))
        }
        let stamp = run.stamper.stamp(filled, arrival: arrival)
        if let change = stamp.change { run.sink.report(.note(change)) }
        guard isWhole(filled, opened) else {
            run.lost += 1
            if !run.toldDamage {
                run.toldDamage = true
                run.sink.report(.note("the driver hands over damaged frames, which are left out and counted as lost"))
            }
            return
        }
        // Copied before the buffer goes back to the driver.
        let bytes = opened.port.bytes(of: filled, limit: opened.wholeSize ?? .max)
        if run.lost > 0 {
            run.sink.report(.lost(count: run.lost, before: stamp.capture))
            run.lost = 0
        }
        run.sink.deliver(
            Sample(
                payload: .frame(bytes, isKey: AccessUnit.isKey(bytes, opened.format.encoding)),
                capture: stamp.capture, uncertainty: stamp.uncertainty, arrival: arrival, device: filled.stamp,
                sequence: Int64(filled.sequence)))
    }

    private func isWhole(_ filled: V4L2Filled, _ opened: Opened) -> Bool {
        filled.flags & UInt32(V4L2_BUF_FLAG_ERROR) == 0 && filled.bytesUsed >= max(1, opened.wholeSize ?? 1)
    }

    private func fail(_ error: Errno, _ opened: Opened) {
        guard let sink = run?.sink else { return }
        let sentence = fault(error, .dequeue, opened.node)
        stop()
        sink.report(.failed(sentence.description))
    }
}
