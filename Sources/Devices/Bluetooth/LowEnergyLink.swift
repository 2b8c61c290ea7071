package import Platform
package import Timing

/// What a link has to say by itself.
package enum LinkEvent: Sendable, Hashable {
    /// A notification or an indication of the characteristic with this value handle; the instant is when it was read
    /// from the kernel, host time.
    case value(handle: UInt16, bytes: [UInt8], arrival: Timestamp<HostTime>)
    /// The device agreed to other parameters.
    case parameters(ConnectionParameters)
    /// The link is gone; nothing follows.
    case ended(DisconnectReason)
}

/// A connection to one low-energy device: requests one at a time, each with a deadline, and events as they come.
///
/// Concurrency: an actor on the event loop that it was given. The handler is called there and is in place before the
/// first packet is read, so no early notification is lost; an actor on the same loop may use `assumeIsolated` in it.
package actor LowEnergyLink {
    package typealias Handler = @Sendable (LinkEvent) -> Void

    /// Vol 3 Part F 3.2.9: an attribute has at most 512 bytes.
    package static let longestValue = 512

    package nonisolated let peer: LowEnergyPeer
    private nonisolated let loop: EventLoop
    private let channel: any LowEnergyChannel
    private let handler: Handler
    private var client: ATTClient
    private var answers: [ATTClient.RequestID: CheckedContinuation<Result<ATTPacket, LowEnergyError>, Never>] = [:]
    private var timer: EventLoop.TimerID?
    private var outgoing: [[UInt8]] = []
    private var knownParameters: ConnectionParameters?
    private var endReason: DisconnectReason?
    /// A second long value read or write must not mix with the first.
    private var patience: Interval

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Takes over an open channel; call `begin` next.
    ///
    /// - Parameters:
    ///   - peer: who is at the other end.
    ///   - channel: closed by the link.
    ///   - ownMTU: the largest packet that is taken; 517 holds the longest attribute.
    ///   - patience: how long an answer may take.
    ///   - loop: the thread that all of it runs on.
    ///   - handler: called on that thread.
    package init(
        peer: LowEnergyPeer, channel: any LowEnergyChannel, ownMTU: Int = 517, patience: Interval = .seconds(5),
        on loop: EventLoop, _ handler: @escaping Handler
    ) {
        self.peer = peer
        self.channel = channel
        self.loop = loop
        self.handler = handler
        self.patience = patience
        client = ATTClient(ownMTU: ownMTU)
    }

    /// Begins to read.
    package func begin() throws(LowEnergyError) {
        do {
            try loop.watch(channel.descriptor, for: [.readable]) { [weak self] events in
                self?.assumeIsolated { $0.ready(events) }
            }
            if let news = channel.newsDescriptor {
                try loop.watch(news, for: [.readable]) { [weak self] _ in self?.assumeIsolated { $0.update() } }
            }
        } catch {
            finish(.socket(error.errno))
            throw .disconnected(.socket(error.errno))
        }
        update()
    }

    /// Largest packet.
    package var mtu: Int { client.mtu }
    /// Nil when the kernel doesn't tell (without CAP_NET_RAW).
    package var parameters: ConnectionParameters? { channel.parameters }
    package var reason: DisconnectReason? { endReason }
    /// Packets that couldn't be read, or answered nothing.
    package var strayPackets: Int { client.strayPackets }

    // MARK: Requests

    /// Tells the device how long packets may be; gives back what both can.
    @discardableResult
    package func exchangeMTU(_ wanted: UInt16 = 517) async throws(LowEnergyError) -> Int {
        _ = try await request(.exchangeMTURequest(wanted))
        return client.mtu
    }

    /// A whole value, however long it is.
    package func read(_ characteristic: GATTCharacteristic) async throws(LowEnergyError) -> [UInt8] {
        try await read(handle: characteristic.handle)
    }

    /// A whole value: a first part, and more of it as long as the parts are full (Vol 3 Part G 4.8.3).
    package func read(handle: UInt16) async throws(LowEnergyError) -> [UInt8] {
        guard case .readResponse(var value) = try await request(.readRequest(handle)) else { throw unfitting }
        var isFull = value.count >= client.mtu - 1
        while isFull && value.count < Self.longestValue {
            let part: ATTPacket
            do { part = try await request(.readBlobRequest(handle, offset: UInt16(value.count))) } catch {
                // A value that ends exactly here.
                if case .refused(let code, _, _) = error, code == .attributeNotLong || code == .invalidOffset { break }
                throw error
            }
            guard case .readBlobResponse(let bytes) = part else { throw unfitting }
            value += bytes
            isFull = !bytes.isEmpty && bytes.count >= client.mtu - 1
        }
        return Array(value.prefix(Self.longestValue))
    }

    /// Writes and waits for the device's word; a long value goes in parts (Vol 3 Part G 4.9.4).
    package func write(_ value: [UInt8], to characteristic: GATTCharacteristic) async throws(LowEnergyError) {
        try await write(value, handle: characteristic.handle)
    }

    package func write(_ value: [UInt8], handle: UInt16) async throws(LowEnergyError) {
        guard value.count > client.mtu - 3 else {
            guard case .writeResponse = try await request(.writeRequest(handle, value)) else { throw unfitting }
            return
        }
        var offset = 0
        do throws(LowEnergyError) {
            while offset < value.count {
                let part = Array(value[offset..<min(value.count, offset + client.mtu - 5)])
                let at = UInt16(clamping: offset)
                let echo = try await request(.prepareWriteRequest(handle, offset: at, part))
                guard echo == .prepareWriteResponse(handle, offset: at, part) else { throw unfitting }
                offset += part.count
            }
        } catch {
            _ = try? await request(.executeWriteRequest(commit: false))
            throw error
        }
        guard case .executeWriteResponse = try await request(.executeWriteRequest(commit: true)) else {
            throw unfitting
        }
    }

    /// Writes without an answer; a value that doesn't fit one packet is refused.
    package func send(_ value: [UInt8], to characteristic: GATTCharacteristic) throws(LowEnergyError) {
        if let endReason { throw .disconnected(endReason) }
        guard value.count <= client.mtu - 3 else {
            throw .malformed("\(value.count) bytes don't fit a packet of \(client.mtu)")
        }
        transmit(ATTPacket.writeCommand(characteristic.handle, value).bytes)
    }

    /// Switches notifications on, or indications when there are only these.
    package func subscribe(to characteristic: GATTCharacteristic) async throws(LowEnergyError) {
        guard let configuration = characteristic.configuration,
            !characteristic.properties.isDisjoint(with: [.notify, .indicate])
        else { throw .malformed("characteristic \(characteristic.uuid) can't notify") }
        try await write([characteristic.properties.contains(.notify) ? 1 : 2, 0], handle: configuration)
    }

    package func unsubscribe(from characteristic: GATTCharacteristic) async throws(LowEnergyError) {
        guard let configuration = characteristic.configuration else { return }
        try await write([0, 0], handle: configuration)
    }

    /// One request; when the device asks for security, the link is encrypted and the request repeated once.
    package func request(_ packet: ATTPacket) async throws(LowEnergyError) -> ATTPacket {
        do { return try await ask(packet) } catch {
            guard case .refused(let code, _, _) = error, code.asksForSecurity else { throw error }
            try channel.setSecurity(.encrypted)
            return try await ask(packet)
        }
    }

    private func ask(_ packet: ATTPacket) async throws(LowEnergyError) -> ATTPacket {
        let (id, actions) = client.request(packet, patience: patience, at: HostClock.now)
        return try await withCheckedContinuation { continuation in
            answers[id] = continuation
            perform(actions)
        }.get()
    }

    private var unfitting: LowEnergyError { .malformed("the device's answer doesn't fit the request") }

    // MARK: The link

    /// Asks for other connection parameters; an event tells what came of it.
    package func ask(for wish: ConnectionWish) throws(LowEnergyError) { try channel.ask(for: wish) }

    package func setSecurity(_ level: LinkSecurity) throws(LowEnergyError) { try channel.setSecurity(level) }

    /// Ends the link; an `ended` event follows before the return.
    package func disconnect() { perform(client.end(.local)) }

    // MARK: On the loop's thread

    private func ready(_ events: EventLoop.Events) {
        if events.contains(.writable) { flush() }
        // At most so many, so that others on this thread get their turn.
        var buffer = [UInt8](repeating: 0, count: 2048)
        for _ in 0..<64 {
            guard endReason == nil else { return }
            let received = PacketSocket.receive(channel.descriptor, into: &buffer)
            let arrival = HostClock.now
            switch received {
            case .packet(let packet): perform(client.receive(packet, at: arrival))
            case .nothing: return
            case .end(let error):
                channel.update()
                perform(client.end(channel.reason ?? .socket(error)))
                return
            }
        }
    }

    private func update() {
        channel.update()
        guard let now = channel.parameters, now != knownParameters else { return }
        knownParameters = now
        handler(.parameters(now))
    }

    private func perform(_ actions: [ATTClient.Action]) {
        for action in actions {
            switch action {
            case .send(let bytes): transmit(bytes)
            case .answer(let id, let result): answers.removeValue(forKey: id)?.resume(returning: result)
            case .deliver(let value, let arrival):
                handler(.value(handle: value.handle, bytes: value.bytes, arrival: arrival))
            case .breakLink(let reason): finish(reason)
            }
        }
        schedule()
    }

    private func transmit(_ bytes: [UInt8]) {
        guard endReason == nil else { return }
        outgoing.append(bytes)
        flush()
    }

    private func flush() {
        while let next = outgoing.first {
            do throws(Errno) {
                guard try PacketSocket.send(channel.descriptor, next) else {
                    arm(writable: true)
                    return
                }
                outgoing.removeFirst()
            } catch {
                // A send that failed for good shows at the next read too; the reason is told there.
                outgoing = []
            }
        }
        arm(writable: false)
    }

    private var isArmedForWriting = false

    private func arm(writable: Bool) {
        guard writable != isArmedForWriting, endReason == nil else { return }
        isArmedForWriting = writable
        try? loop.watch(channel.descriptor, for: writable ? [.readable, .writable] : [.readable]) {
            [weak self] events in self?.assumeIsolated { $0.ready(events) }
        }
    }

    private func schedule() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard endReason == nil, let deadline = client.deadline else { return }
        timer = loop.schedule(at: deadline) { [weak self] in
            self?.assumeIsolated { link in link.perform(link.client.tick(at: HostClock.now)) }
        }
    }

    private func finish(_ reason: DisconnectReason) {
        guard endReason == nil else { return }
        endReason = reason
        if let timer { loop.cancel(timer) }
        timer = nil
        loop.unwatch(channel.descriptor)
        if let news = channel.newsDescriptor { loop.unwatch(news) }
        channel.close()
        handler(.ended(reason))
    }
}
