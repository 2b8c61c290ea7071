internal import Platform
internal import Protocol
internal import Timing

/// One glove: its link, kept alive, and its rows for each stream that is made of them.
///
/// A glove has several streams, and a `CaptureDevice` is one. So each stream is a `GloveDevice`, and those of one glove
/// share this; the first that opens makes the link, the last that closes ends it.
///
/// Concurrency: an actor on its own event loop, on which the link lives too; sinks are called there.
package actor GloveSession {
    private struct Opening {
        let waiter: CheckedContinuation<Result<Void, GloveFault>, Never>
    }

    /// Before a row of a kind that the glove may not have at all is given up.
    private static let firstRow = Interval.seconds(3)
    private static let tick = Interval.milliseconds(250)
    private static let lowBattery = 15

    package nonisolated let side: GloveSide
    private nonisolated let loop: EventLoop
    private nonisolated let transport: any GloveTransport
    private nonisolated let claims: any GloveClaims
    private nonisolated let log: Log
    private var machine = GloveLinkMachine()
    private var users: Set<GloveModality> = []
    private var openings: [Opening] = []
    private var connection: GloveConnection?
    private var rows: [GloveModality: GloveRows] = [:]
    private var rowWaiters: [(GloveModality, CheckedContinuation<Bool, Never>)] = []
    /// Events of an earlier connection are nobody's.
    private var epoch = 0
    private var timer: EventLoop.TimerID?
    private var malformed: Int64 = 0
    private var closing: Task<Void, Never>?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ side: GloveSide, transport: any GloveTransport, claims: any GloveClaims) {
        self.side = side
        self.transport = transport
        self.claims = claims
        // An arrival is stamped when this thread runs: where it may, it comes before what isn't in a hurry.
        loop = EventLoop(name: "glove-\(side.rawValue)", fifoPriority: 5)
        log = Log("glove \(side.rawValue)")
    }

    // MARK: For the streams

    /// Makes the link, unless it stands, and says what a stream of one kind will deliver.
    func open(_ modality: GloveModality, as stream: StreamID) async throws(GloveFault) -> StreamDescription {
        users.insert(modality)
        do throws(GloveFault) {
            if case .streaming = machine.state {
            } else {
                try await withCheckedContinuation { waiter in
                    openings.append(Opening(waiter: waiter))
                    perform(.open)
                }.get()
            }
            guard let connection, let rate = connection.rate(modality), await hasRows(modality) else {
                throw GloveFault(
                    .unsupported, "the \(side.rawValue) glove sends no '\(modality.rawValue)' rows",
                    cure: "remove this stream from the configuration", isFinal: true)
            }
            return description(connection, modality, rate, stream)
        } catch {
            await close(modality)
            throw error
        }
    }

    func start(_ modality: GloveModality, _ sink: any SampleSink) throws(GloveFault) {
        guard case .streaming = machine.state, rows[modality] != nil else {
            throw GloveFault(.disconnected, "the \(side.rawValue) glove's link was lost", cure: "open it anew")
        }
        precondition(rows[modality]?.sink == nil, "the glove's '\(modality.rawValue)' was started twice")
        rows[modality]?.sink = sink
        if let battery = connection?.battery, battery <= Self.lowBattery {
            sink.report(.note("the glove's battery is at \(battery) %"))
        }
    }

    func stop(_ modality: GloveModality) { rows[modality]?.finish(at: HostClock.now) }

    func close(_ modality: GloveModality) async {
        stop(modality)
        users.remove(modality)
        guard users.isEmpty else { return }
        perform(.close)
        rows = [:]
        let old = connection
        connection = nil
        epoch += 1
        if let old { claims.release(old.identity) }
        await old?.close()
    }

    /// How often the link was lost and came back, and rows that came twice; since it was opened.
    package var figures: (reconnects: Int, duplicates: Int64, malformed: Int64) {
        (machine.reconnects, rows.values.reduce(0) { $0 + $1.duplicates }, malformed)
    }

    private func description(
        _ connection: GloveConnection, _ modality: GloveModality, _ rate: Double, _ stream: StreamID
    ) -> StreamDescription {
        let battery = connection.battery.map { ", battery \($0) %" } ?? ""
        return StreamDescription(
            id: stream, kind: .sensor, deviceKind: GloveKind.name,
            deviceIdentity: connection.configuration.serial.map { "\($0) at \(connection.identity)" }
                ?? connection.identity,
            label: "\(connection.configuration.label), \(modality.rawValue); \(connection.link)\(battery)",
            nominalRate: rate, sensor: SensorFormat(channels: connection.configuration.channels(modality)),
            capabilities: StreamCapabilities(producesFile: false),
            timestampSource: "the glove's counter of microseconds, on host time by the quickest arrivals")
    }

    /// Whether the glove sends rows of a kind.
    private func hasRows(_ modality: GloveModality) async -> Bool {
        if rows[modality].map({ $0.rows > 0 }) ?? false { return true }
        let (loop, limit) = (loop, Self.firstRow)
        return await withCheckedContinuation { waiter in
            rowWaiters.append((modality, waiter))
            loop.schedule(at: HostClock.now + limit) { [weak self] in
                self?.assumeIsolated { $0.answerRowWaiters(modality, false) }
            }
        }
    }

    private func answerRowWaiters(_ modality: GloveModality, _ answer: Bool) {
        for (wanted, waiter) in rowWaiters where wanted == modality { waiter.resume(returning: answer) }
        rowWaiters.removeAll { $0.0 == modality }
    }

    // MARK: The link, on the loop's thread

    private func perform(_ event: GloveLinkMachine.Event) {
        for action in machine.handle(event, at: HostClock.now) {
            switch action {
            case .connect(let patience): connect(within: patience)
            case .disconnect: disconnect()
            case .ready: answer(.success(()))
            case .recovered: tellRecovery()
            case .lost(let why): lost(why)
            case .giveUp(let fault): answer(.failure(fault))
            }
        }
        schedule()
    }

    private func answer(_ result: Result<Void, GloveFault>) {
        let waiting = openings
        openings = []
        for opening in waiting { opening.waiter.resume(returning: result) }
    }

    private func schedule() {
        if machine.state == .closed {
            if let timer { loop.cancel(timer) }
            timer = nil
            answer(.failure(GloveFault(.disconnected, "the glove was closed", cure: "open it anew")))
            return
        }
        guard timer == nil else { return }
        timer = loop.schedule(at: HostClock.now + Self.tick) { [weak self] in
            self?.assumeIsolated { session in
                session.timer = nil
                session.perform(.tick)
            }
        }
    }

    private func connect(within patience: Interval) {
        epoch += 1
        let mine = epoch
        let closing = closing
        Task {
            // One link at a time: the new one must not be the old one's rest.
            await closing?.value
            do throws(GloveFault) {
                let connection = try await transport.connect(
                    as: side, claims: claims, within: patience, on: loop
                ) { [weak self] event in self?.assumeIsolated { $0.handle(event, epoch: mine) } }
                guard mine == epoch else {
                    await connection.close()
                    return
                }
                self.connection = connection
                prepareRows(connection)
                replayEarly()
                perform(.connected)
            } catch {
                guard mine == epoch else { return }
                log.info("\(transport.label): \(error)")
                perform(.failed(error))
            }
        }
    }

    private func disconnect() {
        epoch += 1
        let old = connection
        connection = nil
        early = []
        guard let old else { return }
        closing = Task { await old.close() }
    }

    private func prepareRows(_ connection: GloveConnection) {
        for modality in GloveModality.allCases {
            guard let rate = connection.rate(modality) else { continue }
            if rows[modality] == nil {
                rows[modality] = GloveRows(modality, rate: rate, path: connection.path)
            } else if rows[modality]?.path != connection.path {
                rows[modality]?.replacePath(connection.path)
            }
        }
    }

    /// Packets that came before the connection was whole.
    private var early: [(readings: [GloveReading], arrival: Timestamp<HostTime>)] = []
    private static let mostEarly = 256

    private func handle(_ event: GloveEvent, epoch mine: Int) {
        guard mine == epoch else { return }
        switch event {
        case .readings(let readings, let arrival):
            guard !readings.isEmpty else { return }
            guard connection != nil else {
                if early.count < Self.mostEarly { early.append((readings, arrival)) }
                return
            }
            take(readings, arrival)
            perform(.data)
        case .malformed(let what):
            malformed += 1
            if malformed == 1 { tell("\(what); such packets are left out") }
        case .note(let text): tell(text)
        case .path(let path):
            // While a link is made its parameters change; what counts is what they are in the end.
            guard connection != nil else { return }
            for modality in GloveModality.allCases where rows[modality].map({ $0.path != path }) ?? false {
                rows[modality]?.replacePath(path)
            }
        case .ended(let why): perform(.ended(why))
        }
    }

    private func replayEarly() {
        let waiting = early
        early = []
        for (readings, arrival) in waiting { take(readings, arrival) }
        if !waiting.isEmpty { perform(.data) }
    }

    private func take(_ readings: [GloveReading], _ arrival: Timestamp<HostTime>) {
        for modality in GloveModality.allCases where rows[modality] != nil {
            rows[modality]?.take(readings, arrival: arrival)
        }
        guard !rowWaiters.isEmpty else { return }
        for modality in Set(readings.map(\.modality)) { answerRowWaiters(modality, true) }
    }

    private func lost(_ why: String) {
        let now = HostClock.now
        tell("its link was lost (\(why)); it is tried again")
        for modality in GloveModality.allCases {
            rows[modality]?.linkLost("the glove's link was lost: \(why)", at: now)
        }
    }

    private func tellRecovery() {
        guard let connection else { return }
        tell("its link is back (\(connection.link))")
    }

    private func tell(_ text: String) {
        log.warning("the \(side.rawValue) glove: \(text)")
        for rows in rows.values { rows.sink?.report(.note("the \(side.rawValue) glove: \(text)")) }
    }
}
