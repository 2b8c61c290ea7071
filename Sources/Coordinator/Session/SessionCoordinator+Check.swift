internal import Platform
package import Protocol
package import Timing
internal import Transport

/// What a host would say to a take now.
package struct HostCheck: Sendable {
    package var host: HostID
    /// What would refuse or spoil a take, a sentence each; empty when all is well.
    package var problems: [String]
    package var report: ArmReport?
    /// What its microphones hear of the leader.
    package var sound: [String] = []
    package var clockBound: Interval?
    /// What it said of its streams, also when it refused.
    var streams: [StreamOutcome] = []
}

extension SessionCoordinator {
    /// What all hosts would say to a take.
    package struct RigCheck: Sendable {
        package var hosts: [HostCheck]
        /// Which preset suits this room better than the take's own; nil when that one does, or none.
        package var advice: String?
    }

    /// Arms each host that is there, and lets go of it again: the surest way to know whether a take would begin.
    ///
    /// - Parameters:
    ///   - settings: of the take.
    ///   - playsSound: whether the leader plays quiet sweeps, and the microphones are asked what they heard.
    /// - Returns: a check for each host of the take, sorted.
    package func check(_ settings: TakeSettings, playsSound: Bool = true) async -> RigCheck {
        await waitForClocks(settings.timing.clockLimit, hosts: settings.hosts, patience: settings.timing.clockTimeout)
        var settings = settings
        var checks = await armAll(settings)
        if settings.chirp != .off, !settings.isLeaderFixed, !Self.canPlay(checks).contains(settings.leader),
            let other = Self.canPlay(checks).first
        {
            // As a take does it: another one leads, and is armed for that.
            await letGo(settings, checks)
            (settings.take, settings.leader) = (settings.spareTake, other)
            checks = await armAll(settings)
        }
        let advice = playsSound ? await listen(settings, &checks) : nil
        await letGo(settings, checks)
        var hardware = SharedHardware()
        for check in checks { hardware.note(check.streams, of: check.host) }
        for conflict in hardware.conflicts {
            for index in checks.indices where conflict.hosts.contains(checks[index].host) {
                checks[index].problems.insert("hosts \(conflict.text)", at: 0)
            }
        }
        let canPlay = Self.canPlay(checks)
        if settings.chirp != .off, !canPlay.contains(settings.leader), settings.isLeaderFixed || canPlay.isEmpty,
            let index = checks.firstIndex(where: { $0.host == settings.leader })
        {
            let cure = canPlay.first.map { "'--leader \($0)'" } ?? "a 'speaker' in the agent.json5 of a host"
            checks[index].problems.append("it leads and can't play the chirps; try \(cure), or '--chirp off'")
        }
        return RigCheck(hosts: checks, advice: advice)
    }

    private static func canPlay(_ checks: [HostCheck]) -> [HostID] {
        checks.filter { $0.report?.canPlayChirps == true }.map(\.host)
    }

    private func armAll(_ settings: TakeSettings) async -> [HostCheck] {
        let checks = await withTaskGroup(of: HostCheck.self) { group in
            for host in settings.hosts { group.addTask { await self.check(host, settings) } }
            var all: [HostCheck] = []
            for await check in group { all.append(check) }
            return all
        }
        return checks.sorted { $0.host < $1.host }
    }

    /// Both presets are tried, and the operator's own.
    private func listen(_ settings: TakeSettings, _ checks: inout [HostCheck]) async -> String? {
        let armed = checks.filter { $0.report != nil }
        guard settings.startSpec != nil,
            armed.contains(where: { $0.host == settings.leader && $0.report?.canPlayChirps == true })
        else { return nil }
        let presets: [ChirpPreset] = [.ultrasonic, .audible] + (settings.chirp == .custom ? [.custom] : [])
        let findings = await checkSound(settings, hosts: armed.map(\.host), presets: presets)
        for index in checks.indices {
            checks[index].sound = findings.facts[checks[index].host] ?? []
            checks[index].problems += findings.problems[checks[index].host] ?? []
        }
        return findings.advice
    }

    private func letGo(_ settings: TakeSettings, _ checks: [HostCheck]) async {
        let message = Message.abort(TakeReference(take: settings.take, reason: "it was only a check"))
        await withTaskGroup(of: Void.self) { group in
            for check in checks {
                guard let link = link(to: check.host) else { continue }
                group.addTask { _ = try? await link.request(message, timeout: .seconds(3)) }
            }
        }
    }

    /// Waits until the clocks of hosts are known well enough, at most for a while.
    package func waitForClocks(_ limit: Interval, hosts: [HostID], patience: Interval) async {
        let end = HostClock.now + patience
        while HostClock.now < end {
            let now = HostClock.rigNow
            let isKnown = hosts.filter { isReady($0) }.allSatisfy { host in
                clocks.bound(of: host, at: now).map { $0 <= limit } ?? false
            }
            if isKnown { return }
            try? await loop.sleep(for: .milliseconds(50))
            if Task.isCancelled { return }
        }
    }

    private func check(_ host: HostID, _ settings: TakeSettings) async -> HostCheck {
        let bound = clocks.bound(of: host, at: HostClock.rigNow)
        var check = HostCheck(host: host, problems: [], report: nil, clockBound: bound)
        guard isReady(host), let link = link(to: host) else {
            let problem = registry.entry(of: host)?.problem?.text
            check.problems.append(
                problem.map { Self.withoutName($0, host) } ?? "absent; is its agent running, and is it on this network?"
            )
            return check
        }
        if bound.map({ $0 > settings.timing.clockLimit }) ?? true {
            check.problems.append(
                "its clock is known to \(RigTable.bound(bound)) only, and a take needs "
                    + "\(RigTable.bound(settings.timing.clockLimit)); is UDP to its clock port blocked?")
        }
        do {
            let timeout = settings.timing.startTimeout + .seconds(4)
            guard case .armed(let report) = try await link.request(.arm(settings.plan(for: host)), timeout: timeout)
            else {
                return check
            }
            check.report = report
            check.streams = report.streams
            check.problems += TakeMachine.problems(report, settings)
        } catch let refusal as Refusal {
            check.problems.append(Self.withoutName(refusal.message, host))
            check.streams = refusal.streams ?? []
            for outcome in refusal.streams ?? [] {
                if let error = outcome.error { check.problems.append("stream \(outcome.stream.id): \(error)") }
            }
        } catch {
            check.problems.append(Self.withoutName("\(error)", host))
        }
        return check
    }
}
