internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import Timing
internal import Transport

// Finding hosts, and talking to them.
extension SessionCoordinator {
    func browse() async {
        let browser = ServiceBrowser()
        for await event in await browser.start() {
            switch event {
            case .found(let agent): registryTakes(.found(agent))
            case .lost(let uuid): registryTakes(.gone(uuid))
            case .unreadable(let name, let reason):
                Self.log.warning("what '\(name)' advertises can't be read: \(reason)")
            case .daemonAway(let reason): discoveryProblem = reason
            case .daemonBack: discoveryProblem = nil
            }
            changed()
        }
        await browser.stop()
    }

    /// Asks a host of the static list until it answers, and again whenever it is lost.
    func probe(_ host: HostID, at address: String) async {
        let probe = StaticProbe()
        var last = ""
        while !Task.isCancelled {
            if registry.entry(of: host)?.isAlive != true {
                do {
                    registryTakes(.found(try await probe.identify(address, timeout: .seconds(2))))
                    last = ""
                } catch is CancellationError {
                    return
                } catch {
                    if "\(error)" != last { Self.log.debug("\(error)") }
                    last = "\(error)"
                }
            }
            guard (try? await loop.sleep(for: .milliseconds(700))) != nil else { return }
        }
    }

    func registryTakes(_ event: HostRegistry.Event) {
        let actions = registry.handle(event, now: HostClock.rigNow)
        for action in actions { perform(action) }
        if !actions.isEmpty { changed() }
    }

    private func perform(_ action: HostRegistry.Action) {
        switch action {
        case .judge(let agent): judge(agent)
        case .connect(let agent): connect(agent)
        case .disconnect(let uuid): hangUp(uuid)
        case .lost(let uuid, let reason):
            guard let host = registry.entries[uuid]?.host else { return }
            talks[uuid]?.hasLease = false
            feed(.lost(host, reason))
        case .returned(let uuid):
            if let host = registry.entries[uuid]?.host { Self.log.debug("host \(host) is back") }
        case .problem(let uuid, let problem):
            guard let host = registry.entries[uuid]?.host, expected.contains(host) else { return }
            tell(TakeNote(.error, host: host, Self.withoutName(problem.text, host)))
        }
    }

    private func judge(_ agent: AgentAdvertisement) {
        guard let key = CurveKey(z85: agent.key) else { return }
        do {
            let judgement = try trust.judge(
                hostUUID: agent.hostUUID, host: agent.host, key: key, joinProofs: agent.joinProofs)
            if judgement == .admitted { tell(TakeNote(.info, host: agent.host, "it has joined the rig")) }
            registryTakes(.judged(agent, judgement))
        } catch {
            tell(TakeNote(.error, host: agent.host, "it can't be judged: \(error)"))
        }
    }

    private func connect(_ agent: AgentAdvertisement) {
        let uuid = agent.hostUUID
        guard isMeant(agent.host), !opening.contains(uuid), let key = CurveKey(z85: agent.key) else { return }
        if let talk = talks[uuid] {
            let old = talk.advertisement
            let isSame =
                old.commandPort == agent.commandPort && old.addresses == agent.addresses && old.key == agent.key
            if isSame { return }
            hangUp(uuid)
        }
        opening.insert(uuid)
        let keys = trust.keys
        // Unstructured, because connections come and go with what is discovered; `close` and `hangUp` end them.
        Task {
            do {
                let link = try await self.options.connect(agent, key, keys)
                await self.connected(agent, link)
            } catch {
                self.opening.remove(uuid)
                self.registryTakes(.refused(uuid, .unreadable("no connection can be made: \(error)")))
            }
        }
    }

    private func connected(_ agent: AgentAdvertisement, _ link: any AgentLink) async {
        let uuid = agent.hostUUID
        opening.remove(uuid)
        // Refused meanwhile: a twin of it was found.
        guard registry.entries[uuid]?.link != HostRegistry.Link.none else { return await link.close() }
        let session = HostSession(
            uuid: uuid, link: link,
            identity: HostSession.Identity(coordinator: trust.coordinator, name: trust.name),
            wantsLease: options.commands && expected.contains(agent.host), loop: loop
        ) { [weak self] update in await self?.take(update, from: uuid, by: link) }
        // Unstructured: see `connect`.
        let task = Task { await session.run() }
        talks[uuid] = Talk(session: session, advertisement: agent, task: task)
        changed()
    }

    private func hangUp(_ uuid: UniqueID) {
        guard let talk = talks.removeValue(forKey: uuid) else { return }
        talk.task.cancel()
        talk.probeTask?.cancel()
    }

    private func take(_ update: HostSession.Update, from uuid: UniqueID, by link: any AgentLink) {
        // What an old connection still had to say is of no interest.
        guard let talk = talks[uuid], talk.session.link as AnyObject === link as AnyObject,
            let host = registry.entries[uuid]?.host
        else { return }
        switch update {
        case .welcomed(let welcome):
            registryTakes(.welcomed(uuid, welcome))
            if welcome.hostUUID == uuid { followClock(uuid, welcome) }
        case .leased:
            talks[uuid]?.hasLease = true
            registryTakes(.leased(uuid))
        case .snapshot(let snapshot):
            talks[uuid]?.snapshot = snapshot
            registryTakes(.heard(uuid, snapshot.status))
            feed(.returned(host, snapshot))
            feed(.status(host, snapshot.status))
        case .status(let status):
            registryTakes(.heard(uuid, status))
            talks[uuid]?.snapshot?.status = status
            feed(.status(host, status))
        case .event(let event):
            Self.log.debug("host \(host): \(event.kind.rawValue) \(event.message)")
            feed(.happened(host, event))
        case .disconnected(let reason): registryTakes(.disconnected(uuid, reason))
        case .refused(let problem): registryTakes(.refused(uuid, problem))
        case .dropped(let count): Self.log.warning("host \(host): \(count) events were dropped here")
        }
        changed()
    }

    // MARK: Clocks

    private func followClock(_ uuid: UniqueID, _ welcome: Welcome) {
        guard let talk = talks[uuid] else { return }
        if talk.probe != nil && talk.clockKey == welcome.clockKey { return }
        talk.probeTask?.cancel()
        guard let key = Data(base64Encoded: welcome.clockKey), key.count == 32 else {
            return tell(TakeNote(.error, host: welcome.host, "its clock key can't be read; install the same version"))
        }
        do {
            let probe = try ClockProbe(
                host: welcome.host, addresses: talk.advertisement.addresses, port: welcome.clockPort,
                coordinator: trust.coordinator, key: [UInt8](key))
            let host = welcome.host
            talks[uuid]?.probe = probe
            talks[uuid]?.clockKey = welcome.clockKey
            // Unstructured: it ends with the talk, in `hangUp` or `close`.
            talks[uuid]?.probeTask = Task {
                await withDiscardingTaskGroup { group in
                    group.addTask { await probe.run() }
                    for await burst in probe.bursts { self.measured(host, burst) }
                }
            }
        } catch {
            tell(TakeNote(.error, host: welcome.host, "its clock can't be followed: \(error)"))
        }
    }

    private func measured(_ host: HostID, _ burst: [ClockExchange<RigTime, HostTime>]) {
        let events = clocks.add(burst, of: host)
        for event in events where expected.contains(host) {
            tell(TakeNote(.warning, host: host, event.message))
        }
        if !events.isEmpty, let probe = talks.values.first(where: { $0.probe?.host == host })?.probe {
            // Unstructured: it does nothing but set the pace.
            Task { await probe.hurry() }
        }
        if machine?.phase == .armed { feedClock(host) }
    }

    func feedClock(_ host: HostID) {
        guard let timing = machine?.record.settings.timing else { return }
        feed(.clock(host, bound: clocks.bound(of: host, at: HostClock.rigNow + timing.lead)))
    }

    /// A failure's text without the name that is put before it anyway.
    static func withoutName(_ text: String, _ host: HostID) -> String {
        text.hasPrefix("host \(host): ") ? String(text.dropFirst("host \(host): ".count)) : text
    }
}
