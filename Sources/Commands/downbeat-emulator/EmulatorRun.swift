internal import Devices
internal import Glibc
internal import Platform
internal import Timing

/// What an emulated sensor is, apart from its link.
///
/// Pure; one owner.
protocol EmulatorModel: Sendable {
    /// Between two samples on the device's own clock, ns of host time.
    var period: Double { get }

    /// The packet of a sample; its index counts on over faults, its age is since the start.
    mutating func packet(_ index: Int64, taken age: Interval) -> [UInt8]

    /// The counter begins anew (0), or jumps by some seconds.
    mutating func shiftCounter(by seconds: Double?)

    /// Handles what the host sent; answers for it.
    mutating func received(_ bytes: [UInt8]) -> [[UInt8]]
}

/// Lets an emulated sensor run against the clock: samples on their time, faults on theirs, commands from standard input.
///
/// Concurrency: all of it is on its event loop's thread.
actor EmulatorRun {
    private static let longestWait = Interval.milliseconds(20)

    private let loop = EventLoop(name: "emulator")
    private let edge: any EmulatorEdge
    private var model: any EmulatorModel
    private var link: EmulatedLink
    private let truth: OpenFile?
    private let start = HostClock.now + .milliseconds(10)
    private var index: Int64 = 0
    private var nextSample = Interval.zero
    private var isUp = true

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The truth is a file for what was really taken: index, host time in ns, 1 when it was sent whole.
    init(
        _ model: sending any EmulatorModel, edge: sending any EmulatorEdge, link: EmulatedLink,
        truth: OpenFile?
    ) {
        self.model = model
        self.edge = edge
        self.link = link
        self.truth = truth
    }

    /// Runs until SIGINT or SIGTERM.
    func run() async throws {
        try edge.plug(true)
        StandardOutput.write("downbeat-emulator: \(edge.place)\n")
        let signals = try Signals.stream(on: loop)
        let input = FaultInput(on: loop) { [weak self] line in self?.assumeIsolated { $0.command(line) } ?? true }
        tick()
        for await _ in signals { break }
        input.end()
        try edge.plug(false)
    }

    private func command(_ line: String) -> Bool { link.plan.add(line, now: HostClock.now - start) }

    // MARK: Time, on the loop's thread

    private func tick() {
        let age = HostClock.now - start
        plug(age)
        for value in link.plan.take(.reset, at: age) where value != 0 { model.shiftCounter(by: nil) }
        for value in link.plan.take(.jump, at: age) { model.shiftCounter(by: value) }
        for bytes in edge.receive() { for answer in model.received(bytes) { edge.send(answer) } }
        while nextSample <= age {
            let packet = model.packet(index, taken: nextSample)
            let sent = link.take(packet, at: nextSample)
            note(index, nextSample, sent)
            index += 1
            nextSample = nextSample + .seconds(model.period / 1e9)
        }
        for packet in link.due(at: age) { edge.send(packet) }
        let wait = min(nextSample, link.next ?? nextSample, age + Self.longestWait)
        loop.schedule(at: start + max(wait, age + .microseconds(50))) { [weak self] in
            self?.assumeIsolated { $0.tick() }
        }
    }

    private func plug(_ age: Interval) {
        guard link.isUp(at: age) != isUp else { return }
        isUp.toggle()
        do {
            try edge.plug(isUp)
            StandardOutput.write("downbeat-emulator: \(isUp ? "plugged in" : "plugged out")\n")
        } catch {
            StandardError.write("downbeat-emulator: \(error)\n")
        }
    }

    private func note(_ index: Int64, _ age: Interval, _ sent: Bool) {
        truth?.write("\(index) \((start + age).nanoseconds) \(sent ? 1 : 0)\n")
    }
}
