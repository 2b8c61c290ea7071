internal import Devices
internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// What a scripted driver does next.
enum DriverStep: Sendable {
    /// Hands over a frame; its bytes are its sequence number, or those given.
    case frame(
        sequence: UInt32, flags: UInt32 = 0x2000, bytes: Int? = nil, payload: [UInt8]? = nil, age: Interval = .zero)
    case failure(Int32)
    /// The node says that something is wrong, and has no errno for it: the pipe's other end is closed.
    case hangup
}

/// What a driver answers beside its frames.
struct DriverScript: Sendable {
    var steps: [DriverStep] = []
    var offers = [
        V4L2Offer(fourCC: FourCC(.yuyv), sizes: [V4L2Offer.Size(width: 16...16, height: 16...16, rates: [30])])
    ]
    var picture = V4L2Picture(fourCC: FourCC(.yuyv), width: 16, height: 16, bytesPerLine: 32, sizeImage: 512)
    var rate: Double? = 25
    var controls: [V4L2Control] = []
    /// What a control is after it was set, where that is something else; by name.
    var stubborn: [String: Int64] = [:]
    /// The errno of a call, by its operation.
    var failures: [V4L2Fault.Operation: Int32] = [:]

    init(_ steps: [DriverStep] = []) { self.steps = steps }

    /// A camera that gives JPEGs.
    static func mjpeg(_ steps: [DriverStep], rate: Double = 30) -> DriverScript {
        var script = DriverScript(steps)
        script.offers = [
            V4L2Offer(fourCC: FourCC(.mjpeg), sizes: [V4L2Offer.Size(width: 64...64, height: 48...48, rates: [rate])])
        ]
        script.picture = V4L2Picture(fourCC: FourCC(.mjpeg), width: 64, height: 48, sizeImage: 64 * 48 * 2)
        script.rate = rate
        return script
    }
}

/// A driver that replays a list of buffers and errors, in place of the kernel.
final class ScriptedCamera: V4L2Port {
    static let node = CameraNode(path: "/dev/video7", card: "Scripted", bus: "script:0")
    static let width = 16
    static let height = 16

    private var script: DriverScript
    private var steps: ArraySlice<DriverStep>
    private var pipe: [Int32]
    private var free: [Int] = []
    private var payloads: [Int: [UInt8]] = [:]
    private var values: [UInt32: Int64] = [:]
    private let record: @Sendable (String) -> Void

    init(_ script: DriverScript, record: @escaping @Sendable (String) -> Void = { _ in }) {
        self.script = script
        self.record = record
        steps = script.steps[...]
        var ends: [Int32] = [0, 0]
        _ = Glibc.pipe(&ends)
        pipe = ends
    }

    convenience init(_ steps: [DriverStep]) { self.init(DriverScript(steps)) }

    deinit { close() }

    private func fail(_ operation: V4L2Fault.Operation) throws(Errno) {
        guard pipe[0] >= 0 else { throw .noDevice }
        if let number = script.failures[operation] { throw Errno(rawValue: number) }
    }

    var descriptor: Int32 { pipe[0] }

    func capability() throws(Errno) -> V4L2Capability {
        // V4L2_CAP_VIDEO_CAPTURE and V4L2_CAP_STREAMING.
        V4L2Capability(driver: "script", card: "Scripted", bus: "script:0", flags: 0x0400_0001)
    }

    func offers() -> [V4L2Offer] { script.offers }

    func setPicture(_ wanted: V4L2Picture) throws(Errno) -> V4L2Picture {
        try fail(.format)
        return script.picture
    }

    func setRate(_ rate: Double) throws(Errno) -> Double? {
        try fail(.rate)
        return script.rate
    }

    func controls() -> [V4L2Control] { script.controls }

    func value(of control: V4L2Control) throws(Errno) -> Int64 { values[control.id] ?? control.fallback }

    func set(_ control: V4L2Control, to value: Int64) throws(Errno) {
        record("set \(control.name)=\(value)")
        values[control.id] = script.stubborn[control.name] ?? value
    }

    func mapBuffers(_ count: Int) throws(Errno) -> (count: Int, flags: UInt32) {
        try fail(.buffers)
        return (4, 0x2000)
    }

    func queue(_ index: Int) throws(Errno) {
        try fail(.queue)
        free.append(index)
    }

    func dequeue() throws(Errno) -> V4L2Filled? {
        guard pipe[0] >= 0 else { throw .noDevice }
        guard !free.isEmpty, let step = steps.popFirst() else {
            var byte: UInt8 = 0
            if pipe[1] >= 0 { _ = read(pipe[0], &byte, 1) }
            return nil
        }
        switch step {
        case .failure(let number): throw Errno(rawValue: number)
        case .hangup:
            var byte: UInt8 = 0
            _ = read(pipe[0], &byte, 1)
            _ = Glibc.close(pipe[1])
            pipe[1] = -1
            return nil
        case .frame(let sequence, let flags, let bytes, let payload, let age):
            let index = free.removeFirst()
            payloads[index] = payload
            return V4L2Filled(
                index: index, bytesUsed: payload?.count ?? bytes ?? 512, flags: flags, sequence: sequence,
                stamp: Timestamp(nanoseconds: (HostClock.now - age).nanoseconds))
        }
    }

    func bytes(of buffer: V4L2Filled, limit: Int) -> FrameBytes {
        if let payload = payloads[buffer.index] { return FrameBytes(Array(payload.prefix(limit))) }
        return FrameBytes(
            [UInt8](repeating: UInt8(truncatingIfNeeded: buffer.sequence), count: min(buffer.bytesUsed, limit)))
    }

    func streamOn() throws(Errno) {
        try fail(.streamOn)
        record("on")
        var byte: UInt8 = 1
        _ = write(pipe[1], &byte, 1)
    }

    func streamOff() { record("off") }

    func close() {
        for end in pipe where end >= 0 { _ = Glibc.close(end) }
        pipe = [-1, -1]
    }
}

/// A machine whose cameras come and go as a test says.
final class ScriptedMachine: Sendable {
    private struct State {
        var nodes: [CameraNode]
        var scripts: [DriverScript]
        var calls: [String] = []
        var connects = 0
        /// Where udev's events go.
        var plug: Int32?
    }

    private let state: Mutex<State>

    /// One script for each time that the node is opened; the last one again and again.
    init(nodes: [CameraNode] = [ScriptedCamera.node], _ scripts: [DriverScript]) {
        state = Mutex(State(nodes: nodes, scripts: scripts))
    }

    var nodes: [CameraNode] {
        get { state.withLock { $0.nodes } }
        set { state.withLock { $0.nodes = newValue } }
    }

    var calls: [String] { state.withLock { $0.calls } }
    var connects: Int { state.withLock { $0.connects } }

    /// As udev does when a node's links are set.
    func plug(_ nodes: [CameraNode]) {
        let end = state.withLock { state in
            state.nodes = nodes
            return state.plug
        }
        if let end {
            var byte: UInt8 = 1
            _ = write(end, &byte, 1)
        }
    }

    var machine: V4L2Camera.Machine {
        V4L2Camera.Machine(
            nodes: { self.nodes },
            connect: { _ throws(Errno) in
                let script = self.state.withLock { state -> DriverScript in
                    state.connects += 1
                    return state.scripts.count > 1 ? state.scripts.removeFirst() : state.scripts.first ?? DriverScript()
                }
                if let number = script.failures[.open] { throw Errno(rawValue: number) }
                return ScriptedCamera(script) { call in self.state.withLock { $0.calls.append(call) } }
            },
            plugs: {
                let monitor = ScriptedPlugs()
                self.state.withLock { $0.plug = monitor.end }
                return monitor
            })
    }
}

private final class ScriptedPlugs: PlugMonitor {
    private let pipe: [Int32]
    init() {
        var ends: [Int32] = [0, 0]
        _ = Glibc.pipe(&ends)
        pipe = ends
    }
    deinit { for end in pipe { _ = Glibc.close(end) } }
    var descriptor: Int32 { pipe[0] }
    var end: Int32 { pipe[1] }
    func drain() -> Bool {
        var byte: UInt8 = 0
        return read(pipe[0], &byte, 1) == 1
    }
}
