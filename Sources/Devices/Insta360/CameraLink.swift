package import Platform
internal import Synchronization
package import Timing

/// The link to one camera, kept alive: `CameraLinkMachine` decides, `CameraConversation` talks, this performs.
///
/// Concurrency: an actor on an event loop, on which the radio's link lives too; `listen` is called there.
package actor CameraLink {
    package enum News: Sendable, Hashable {
        case notice(CameraNotice)
        case state(CameraLinkMachine.State, reason: String)
        case askToWake
    }

    private static let connectPatience = Interval.seconds(10)
    private static let largestPacket: UInt16 = 256

    package nonisolated let target: CameraTarget
    private nonisolated let loop: EventLoop
    private let central: LowEnergyCentral
    private let listen: @Sendable (News) -> Void
    private var machine = CameraLinkMachine()
    private var talk = CameraConversation()
    private var link: LowEnergyLink?
    private var port: GATTCharacteristic?
    private var peer: LowEnergyPeer?
    private var heardName: String?
    /// Events of an earlier connection are nobody's.
    private var epoch = 0
    private var answers: [CameraConversation.RequestID: CheckedContinuation<Result<CameraReply, CameraFault>, Never>] =
        [:]
    private var waiters: [Int: CheckedContinuation<CameraFault?, Never>] = [:]
    private var lastWaiter = 0
    private var timer: EventLoop.TimerID?
    private var work: Task<Void, Never>?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(
        _ target: CameraTarget, central: LowEnergyCentral, on loop: EventLoop,
        listen: @escaping @Sendable (News) -> Void
    ) {
        (self.target, self.central, self.loop, self.listen) = (target, central, loop, listen)
        peer = target.peer
    }

    package var state: CameraLinkMachine.State { machine.state }
    package var isUp: Bool { machine.isUp }
    /// What it advertises, else what the configuration calls it.
    package var name: String { heardName ?? target.word }
    package var damagedFrames: Int64 { talk.damagedFrames }

    // MARK: Up and down

    /// Makes the link, unless it stands; waits at most so long.
    package func up(within patience: Interval) async throws(CameraFault) {
        if machine.isUp { return }
        perform(machine.handle(.forced, at: HostClock.now))
        if machine.isUp { return }
        lastWaiter += 1
        let id = lastWaiter
        let limit = loop.schedule(at: HostClock.now + patience) { [weak self] in
            self?.assumeIsolated { link in
                let words = "it wasn't reached within \(patience.seconds) s (\(link.machine.state.rawValue))"
                link.wake(id, .disconnected(words))
            }
        }
        let fault = await withCheckedContinuation { waiters[id] = $0 }
        loop.cancel(limit)
        if let fault { throw fault }
    }

    package func down() async {
        perform(machine.handle(.unwanted, at: HostClock.now))
        wakeAll(.disconnected("the link was closed"))
    }

    package func wifi(_ use: CameraLinkMachine.WiFi) { perform(machine.handle(.wifi(use), at: HostClock.now)) }

    private func wake(_ id: Int, _ fault: CameraFault?) { waiters.removeValue(forKey: id)?.resume(returning: fault) }

    private func wakeAll(_ fault: CameraFault?) {
        for id in waiters.keys.sorted() { wake(id, fault) }
    }

    // MARK: Requests

    package func request(_ command: CameraCommand, within patience: Interval) async throws(CameraFault) -> CameraReply {
        guard machine.isUp || machine.state == .connecting, port != nil else {
            throw .disconnected("it is \(machine.state.rawValue)")
        }
        let (id, actions) = talk.request(command, patience: patience, at: HostClock.now)
        return try await withCheckedContinuation { continuation in
            answers[id] = continuation
            perform(actions)
        }.get()
    }

    private func perform(_ actions: [CameraConversation.Action]) {
        for action in actions {
            switch action {
            case .write(let bytes): write(bytes)
            case .answer(let id, let result): answers.removeValue(forKey: id)?.resume(returning: result)
            case .notice(let notice): listen(.notice(notice))
            }
        }
        schedule()
    }

    /// Without an answer where the characteristic allows it; in parts when the packets are small.
    private func write(_ bytes: [UInt8]) {
        guard let link, let port else { return }
        let epoch = epoch
        // Unstructured: the link is on the same loop, so the order of the writes is that of the calls.
        Task {
            let size = max(await link.mtu - 3, 20)
            var rest = bytes[...]
            while !rest.isEmpty {
                do {
                    try await link.send(Array(rest.prefix(size)), to: port)
                } catch {
                    self.lost("\(error)", epoch)
                    return
                }
                rest = rest.dropFirst(size)
            }
        }
    }

    // MARK: What the machine wants

    private func perform(_ actions: [CameraLinkMachine.Action]) {
        for action in actions {
            switch action {
            case .scan(let patience): scan(patience)
            case .stopScan: work?.cancel()
            case .connect: connect()
            case .disconnect: disconnect()
            case .heartbeat: write(talk.heartbeat)
            case .askToWake: listen(.askToWake)
            case .changed(let state, let reason):
                listen(.state(state, reason: reason))
                if machine.isUp { wakeAll(nil) }
                if state == .lost || state == .givenUp { wakeAll(.disconnected("\(state.rawValue): \(reason)")) }
            }
        }
        schedule()
    }

    private func take(_ event: CameraLinkMachine.Event) { perform(machine.handle(event, at: HostClock.now)) }

    private func scan(_ patience: Interval) {
        // Where it is needs no scan when the configuration or an earlier one says it.
        if peer != nil {
            loop.perform { [weak self] in self?.assumeIsolated { $0.take(.found) } }
            return
        }
        work?.cancel()
        let (central, target) = (central, target)
        work = Task {
            let found = Found()
            do {
                try await central.scan(AdvertisementFilter(), for: patience) { advertisement in
                    guard target.matches(advertisement) else { return true }
                    found.take(advertisement)
                    return false
                }
            } catch {
                if Task.isCancelled { return }
                self.listen(.state(self.machine.state, reason: "\(error)"))
            }
            if Task.isCancelled { return }
            guard let advertisement = found.first else { return self.take(.scanEmpty) }
            self.peer = advertisement.peer
            self.heardName = advertisement.name ?? self.heardName
            if let signal = advertisement.signal { self.take(.signal(signal)) }
            self.take(.found)
        }
    }

    private func connect() {
        guard let peer else { return take(.connectFailed("nobody knows where it is")) }
        epoch += 1
        let (epoch, central, loop) = (epoch, central, loop)
        work = Task {
            do {
                let link = try await central.connect(to: peer, within: Self.connectPatience, on: loop) {
                    [weak self] event in self?.assumeIsolated { $0.heard(event, epoch) }
                }
                guard self.epoch == epoch else { return await link.disconnect() }
                self.link = link
                try await self.prepare(link)
                self.take(.connected)
            } catch {
                await self.link?.disconnect()
                guard self.epoch == epoch else { return }
                (self.link, self.port) = (nil, nil)
                // A camera may have another address the next time, unless the configuration named it.
                self.peer = self.target.peer
                self.take(.connectFailed("\(error)"))
            }
        }
    }

    private func prepare(_ link: LowEnergyLink) async throws {
        try await link.exchangeMTU(Self.largestPacket)
        let services = try await link.discover()
        guard let write = services.characteristic(CameraTarget.write, in: CameraTarget.service),
            let notify = services.characteristic(CameraTarget.notify, in: CameraTarget.service)
        else { throw LowEnergyError.malformed("'\(target.word)' is no Insta360 camera: it has no service be80") }
        if let name = services.characteristic(GATTNumbers.deviceName), heardName == nil,
            let bytes = try? await link.read(name), !bytes.isEmpty
        {
            heardName = String(decoding: bytes.prefix { $0 != 0 }.prefix(64), as: UTF8.self)
        }
        port = write
        try await link.subscribe(to: notify)
    }

    private func disconnect() {
        epoch += 1
        let link = link
        (self.link, port) = (nil, nil)
        perform(talk.end("this program ended the link"))
        Task { await link?.disconnect() }
    }

    // MARK: What comes

    private func heard(_ event: LinkEvent, _ epoch: Int) {
        guard epoch == self.epoch else { return }
        switch event {
        case .value(_, let bytes, let arrival):
            perform(talk.receive(bytes, at: arrival))
            perform(machine.handle(.heard, at: arrival))
        case .parameters: break
        case .ended(let reason): lost("\(reason)", epoch)
        }
    }

    private func lost(_ why: String, _ epoch: Int) {
        guard epoch == self.epoch else { return }
        self.epoch += 1
        (link, port) = (nil, nil)
        peer = target.peer
        perform(talk.end(why))
        take(.disconnected(why))
    }

    private func schedule() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let next = [machine.deadline, talk.deadline].compactMap({ $0 }).min() else { return }
        timer = loop.schedule(at: next) { [weak self] in
            self?.assumeIsolated { link in
                link.perform(link.talk.tick(at: HostClock.now))
                link.take(.tick)
            }
        }
    }
}

/// The first advertisement that was meant.
private final class Found: Sendable {
    private let state = Mutex<Advertisement?>(nil)
    var first: Advertisement? { state.withLock { $0 } }
    func take(_ advertisement: Advertisement) { state.withLock { $0 = $0 ?? advertisement } }
}
