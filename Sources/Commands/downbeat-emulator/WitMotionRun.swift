internal import Devices
internal import Platform
internal import Timing

/// Lets an emulated WitMotion sensor run at a socket, with its faults on their time.
///
/// Concurrency: on its own loop; the sensor lives on that of its socket.
actor WitMotionRun {
    private static let step = Interval.milliseconds(20)

    private let loop = EventLoop(name: "emulator")
    private let socket: SocketPeripheral
    private var plan: FaultPlan
    private let start = HostClock.now
    private var isUp = true

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ script: WitMotionPeripheral.Script, path: String, plan: FaultPlan, truth: OpenFile?) {
        self.plan = plan
        socket = SocketPeripheral(path: path) {
            let sensor = WitMotionPeripheral(script, at: HostClock.now)
            sensor.onSample = { index, taken, sent in
                truth?.write("\(index) \(taken.nanoseconds) \(sent ? 1 : 0)\n")
            }
            return sensor
        }
    }

    /// Runs until SIGINT or SIGTERM.
    func run() async throws {
        try await socket.begin()
        StandardOutput.write("downbeat-emulator: WitMotion sensor at \(socket.path)\n")
        let signals = try Signals.stream(on: loop)
        let input = FaultInput(on: loop) { [weak self] line in self?.assumeIsolated { $0.command(line) } ?? true }
        // Ends with the program.
        let ticks = Task {
            while !Task.isCancelled {
                await tick()
                try await loop.sleep(for: Self.step)
            }
        }
        for await _ in signals { break }
        ticks.cancel()
        input.end()
        await socket.end()
    }

    private func command(_ line: String) -> Bool { plan.add(line, now: HostClock.now - start) }

    private func tick() async {
        let age = HostClock.now - start
        let down = plan.value(.disconnect, at: age)
        var faults = WitMotionPeripheral.Faults()
        faults.burst = plan.value(.burst, at: age) / 1000
        faults.lossPercent = plan.value(.loss, at: age)
        faults.duplicatePercent = plan.value(.duplicate, at: age)
        faults.isStalled = plan.value(.stall, at: age) > 0
        let falls = down > 0 && isUp
        isUp = down == 0
        let now = faults
        await socket.with { device in
            guard let sensor = device as? WitMotionPeripheral else { return }
            sensor.faults = now
            if falls { sensor.disconnect(for: down, at: HostClock.now) }
        }
    }
}
