internal import Devices
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// A sensor that does what a test tells it: fails to open, hangs, breaks, counts its calls.
final class FakeDevice: CaptureDevice {
    enum Behaviour: Sendable { case good, failsToOpen, hangs }

    struct Calls: Sendable, Hashable {
        var opened = 0
        var started = 0
        var stopped = 0
        var closed = 0
    }

    let stream: StreamID
    private let behaviour: Behaviour
    private let state = Mutex((calls: Calls(), sink: (any SampleSink)?.none))
    private let hanging = Mutex<[CheckedContinuation<Void, Never>]>([])

    init(_ stream: String, _ behaviour: Behaviour = .good) {
        self.stream = StreamID(unchecked: stream)
        self.behaviour = behaviour
    }

    var calls: Calls { state.withLock { $0.calls } }

    func open() async throws -> StreamDescription {
        state.withLock { $0.calls.opened += 1 }
        switch behaviour {
        case .good: break
        case .failsToOpen:
            throw DeviceError(
                .busy, stream: stream, cause: "the sensor is held by process 712 (cheese)", cure: "close that program")
        case .hangs: await withCheckedContinuation { continuation in hanging.withLock { $0.append(continuation) } }
        }
        return StreamDescription(
            id: stream, kind: .sensor, deviceKind: "fake", deviceIdentity: "fake", label: "fake", nominalRate: 100,
            sensor: SensorFormat(channels: [.init(name: "x", unit: "1")]),
            capabilities: StreamCapabilities(producesFile: false), timestampSource: "the test")
    }

    /// Lets calls that hang come back.
    func release() {
        let waiting = hanging.withLock { hanging in
            defer { hanging = [] }
            return hanging
        }
        for continuation in waiting { continuation.resume() }
    }

    func start(_ sink: any SampleSink) async throws {
        state.withLock { state in
            state.calls.started += 1
            state.sink = sink
        }
    }

    func stop() async {
        state.withLock { state in
            state.calls.stopped += 1
            state.sink = nil
        }
    }

    func close() async { state.withLock { $0.calls.closed += 1 } }

    /// Delivers one row with the stamp of now, or another.
    func deliver(at instant: Timestamp<HostTime> = HostClock.now) {
        let sink = state.withLock { $0.sink }
        sink?.deliver(
            Sample(payload: .values([1]), capture: instant, uncertainty: .zero, arrival: HostClock.now))
    }

    func report(_ event: DeviceEvent) {
        let sink = state.withLock { $0.sink }
        sink?.report(event)
    }
}
