internal import Platform
internal import Protocol
internal import Timing

// The sockets of a connection: which address is used, and what a failed handshake means for the requests.
extension AgentConnection {
    func perform(_ actions: [LinkMachine.Action]) {
        for action in actions where !isClosed {
            switch action {
            case .open(let index): open(index)
            case .close(let index): closePath(index)
            case .retry(let index, let wait): handle(.retryDue(index), after: wait)
            case .waitGrace(let wait): handle(.graceOver, after: wait)
            case .connected(let index): connected(index)
            case .disconnected(let reason):
                condition = reason
                bulk?.close()
                bulk = nil
                queue.push(.disconnected(reason))
            case .wrongKey(let finding, let index): tell(finding, index)
            }
        }
    }

    private func open(_ index: Int) {
        closePath(index)
        do {
            paths[index] = try path(index: index, port: commandPort, highWater: Self.commandHighWater)
        } catch {
            // An address that can't be one, or no descriptors left.
            condition = "host \(host): \(error)"
            warn(condition, subject: "open")
            handle(.retryDue(index), after: .seconds(1))
        }
    }

    private func path(index: Int?, port: UInt16, highWater: Int32) throws -> LinkPath {
        let chosen = index ?? machine.chosen ?? 0
        let endpoint = "tcp://\(addresses[chosen].zeroMQ):\(port)"
        let path = try LinkPath(
            runtime.context, endpoint: endpoint, index: index, highWater: highWater, security: security)
        let id = ObjectIdentifier(path)
        try path.watch(
            on: runtime.loop,
            messages: { [weak self] in self?.assumeIsolated { $0.withPath(id) { $0.drain($1) } } },
            events: { [weak self] in self?.assumeIsolated { $0.withPath(id) { $0.drainEvents($1) } } })
        try path.connect()
        return path
    }

    /// Handlers name their path: it may be closed and replaced by the time that they run.
    func withPath(_ id: ObjectIdentifier, _ body: (isolated AgentConnection, LinkPath) -> Void) {
        if let bulk, ObjectIdentifier(bulk) == id { return body(self, bulk) }
        if let path = paths.values.first(where: { ObjectIdentifier($0) == id }) { body(self, path) }
    }

    func closePath(_ index: Int) { paths.removeValue(forKey: index)?.close() }

    private func drainEvents(_ path: LinkPath) {
        while let event = path.monitor.next() {
            switch event {
            case .connected: path.connectedAt = HostClock.now
            case .handshakeSucceeded: established(path)
            case .handshakeFailed(let failure): failed(path, failure)
            case .disconnected:
                guard path.isEstablished else { break }
                path.isEstablished = false
                // Answers may have come in before the connection broke.
                drain(path)
                if let index = path.index { lost(path, index) }
            case .accepted, .acceptFailed: break
            }
        }
    }

    private func established(_ path: LinkPath) {
        path.isEstablished = true
        if let index = path.index {
            perform(machine.handle(.established(index)))
        } else {
            bulkHeard = HostClock.now
            for id in bulkInFlight { transmit(id) }
            fillBulkWindow()
        }
    }

    private func lost(_ path: LinkPath, _ index: Int) {
        perform(machine.handle(.lost(index, "host \(host): the connection to \(path.endpoint) broke")))
        if nextPlace != nil { takeNextPlace() }
    }

    /// Begins anew with the addresses that the host was found at last.
    func takeNextPlace() {
        guard let nextPlace else { return }
        for index in Array(paths.keys) { closePath(index) }
        (addresses, commandPort) = nextPlace
        self.nextPlace = nil
        generation += 1
        machine = LinkMachine(addresses: addresses.count)
        perform(machine.handle(.start))
    }

    private func handle(_ input: LinkMachine.Input, after wait: Interval) {
        let generation = generation
        _ = after(wait) { me in
            if me.generation == generation { me.perform(me.machine.handle(input)) }
        }
    }

    private func connected(_ index: Int) {
        wrongKey = nil
        queue.push(.connected)
        let waiting = pending.filter { !$0.value.isBulk }
        if !waiting.contains(where: { $0.value.kind == .hello }) { sayHelloAgain() }
        for id in waiting.keys { transmit(id) }
        if bulkPort != nil { openBulk() }
    }

    /// Tells the agent who is there, on a new connection; the answer brings the bulk port of an agent that restarted.
    private func sayHelloAgain() {
        guard let hello else { return }
        let envelope = Envelope(message: .hello(hello))
        guard let frames = try? MessageCodec.encode(envelope) else { return }
        begin(
            PendingRequest(frames: frames, kind: .hello, timeout: .seconds(10), isBulk: false, continuation: nil),
            envelope.command)
    }

    func openBulk() {
        bulk?.close()
        bulk = nil
        guard let bulkPort, machine.chosen != nil else { return }
        do {
            bulk = try path(index: nil, port: bulkPort, highWater: Self.bulkHighWater)
        } catch {
            warn("host \(host): \(error)", subject: "bulk")
        }
    }

    private func failed(_ path: LinkPath, _ failure: ZMQMonitor.Failure) {
        let isQuick = path.connectedAt.map { HostClock.now - $0 < .seconds(1) } ?? false
        guard let index = path.index else {
            // libzmq may not try again; the next repetition makes a new socket.
            path.isEstablished = false
            return
        }
        condition = "host \(host): the handshake with \(path.endpoint) failed"
        let meaning: LinkMachine.Failure =
            switch failure {
            case .refused: .refused
            case .mechanismMismatch, .malformed: .mismatch
            case .cryptographic, .cut: .cut(quickly: isQuick)
            }
        if wrongKey != nil { wrongKey?.at = HostClock.now }
        perform(machine.handle(.failed(index, meaning)))
    }

    /// Why a request could not be sent, in words; nil when it could.
    func obstacle(to request: PendingRequest) -> String? {
        guard machine.chosen != nil else { return condition }
        guard request.isBulk, bulk?.isEstablished != true else { return nil }
        guard let bulkPort else { return "no 'hello' was answered yet, so the bulk port isn't known" }
        return "no connection to its bulk port \(bulkPort)"
    }

    // MARK: Wrong keys

    /// Nil when the last proof of it is older than a few tries take: the agent may be gone or mended by now.
    var currentWrongKey: String? {
        guard let wrongKey, HostClock.now - wrongKey.at < .seconds(3) else { return nil }
        return wrongKey.text
    }

    private func tell(_ finding: LinkMachine.Finding, _ index: Int) {
        let place = "\(addresses[index].zeroMQ):\(commandPort)"
        let pairing = "run 'downbeat invite' here and 'downbeat-agent join TOKEN' there"
        let text: String
        switch finding {
        case .refusedOurs:
            let key = ours.map { " (\($0.fingerprint))" } ?? ""
            text =
                "host \(host): wrong key: the agent at \(place) doesn't trust the key of this coordinator\(key); \(pairing)"
        case .otherKey:
            let key = expected.map { " \($0.fingerprint)" } ?? ""
            text =
                "host \(host): wrong key: what answers at \(place) doesn't hold the key\(key) that this host is known "
                + "by; when it was installed anew, \(pairing)"
        case .notEncrypted:
            text =
                "host \(host): wrong key: what answers at \(place) doesn't speak Downbeat's encrypted protocol; is "
                + "another program on that port, or the agent started without encryption?"
        }
        wrongKey = (text, HostClock.now)
        condition = text
        log.warning(text)
        queue.push(.wrongKey(text))
        endAll(LinkError.wrongKey(text))
    }
}
