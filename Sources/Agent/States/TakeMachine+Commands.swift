internal import Protocol
internal import Timing

/// What each command does in each phase.
extension TakeMachine {
    mutating func arm(_ plan: TakePlan) -> Outcome {
        if let words = words(of: plan.take) {
            return .refuse(
                .invalidTransition, "host \(host): \(name(plan.take)) can't be armed again: \(words); plan a new take")
        }
        switch phase {
        case .none, .finished:
            if case .finished(let old, _, _) = phase, old.take == plan.take {
                return .refuse(
                    .invalidTransition,
                    "host \(host): \(name(plan.take)) has been recorded already (\(old.episode)); plan a new take")
            }
            phase = .arming(plan)
            chirps = []
            end = nil
            return Outcome(.whenArmed, [.open(plan)])
        case .arming(plan): return Outcome(.whenArmed)
        case .armed(plan, let report, _), .committed(plan, _, let report, _), .recording(plan, _, let report),
            .stopping(plan, _, let report):
            return Outcome(.message(.armed(report)))
        default:
            let current = self.plan
            let words =
                current?.take == plan.take
                ? "\(name(plan.take)) is \(stateWord) by another plan; plan a new take"
                : "it is \(stateWord) for \(current.map { name($0.take) } ?? "nothing") "
                    + "(\(current?.episode.rawValue ?? "")); wait for its end, or end it with 'downbeat stop'"
            return .refuse(.invalidTransition, "host \(host) can't be armed: \(words)")
        }
    }

    mutating func opened(_ take: UniqueID, _ result: Result<ArmReport, Refusal>, at now: Timestamp<HostTime>) -> Outcome
    {
        // Aborted in the meantime: the disarming that the abort asked for comes after the opening.
        guard case .arming(let plan) = phase, plan.take == take else { return Outcome(.none) }
        switch result {
        case .success(let report):
            phase = .armed(plan, report, until: now + max(plan.armTimeout, .milliseconds(100)))
        case .failure:
            // A refused arm may be tried again with the same take: nothing has begun.
            phase = .none
        }
        return Outcome(.none)
    }

    mutating func commit(_ commit: Commit, at now: Timestamp<HostTime>) -> Outcome {
        let acknowledged = Outcome(.message(.committed(TakeReference(take: commit.take))))
        switch phase {
        case .armed(let plan, let report, _) where plan.take == commit.take:
            if let refusal = objection(to: commit, at: now) { return Outcome(.message(.refused(refusal))) }
            phase = .committed(plan, commit, report: report, isPrepared: false)
            end = End(at: commit.limit, reason: Self.limitReason)
            return Outcome(.whenCommitted, [.prepare(plan, commit)])
        case .committed(_, commit, _, let isPrepared): return isPrepared ? acknowledged : Outcome(.whenCommitted)
        case .recording(_, commit, _), .stopping(_, commit, _), .finished(_, commit, _): return acknowledged
        case .arming(let plan) where plan.take == commit.take:
            return .refuse(
                .invalidTransition,
                "host \(host): the devices of \(name(commit.take)) are still being opened; wait for the answer to 'arm'"
            )
        default:
            guard plan?.take == commit.take else { return unknown(commit.take, doing: .commit) }
            return .refuse(
                .invalidTransition,
                "host \(host): \(name(commit.take)) is \(stateWord) by another commit; abort it and plan a new take")
        }
    }

    private func objection(to commit: Commit, at now: Timestamp<HostTime>) -> Refusal? {
        let lead = commit.start - now
        if lead < Self.leastLead {
            return Refusal(
                .tooLate,
                "host \(host): T0 of \(name(commit.take)) "
                    + (lead < .zero
                        ? "was \((-lead).milliseconds) ms ago" : "is only \(lead.milliseconds) ms ahead")
                    + "; plan it later, or see why the network is slow")
        }
        if lead > Self.farthestLead {
            return Refusal(
                .malformed,
                "host \(host): T0 of \(name(commit.take)) is \(lead.seconds) s ahead; the coordinator's idea of this "
                    + "host's clock is wrong")
        }
        let length = commit.limit - commit.start
        guard length > .zero, length <= Self.longestTake else {
            return Refusal(
                .malformed,
                "host \(host): a take of \(length.seconds) s can't be; the limit is \(Self.longestTake.seconds) s")
        }
        return nil
    }

    mutating func prepared(_ take: UniqueID, _ failure: Refusal?, at now: Timestamp<HostTime>) -> Outcome {
        guard case .committed(let plan, let commit, let report, false) = phase, plan.take == take else {
            return Outcome(.none)
        }
        if let failure {
            return Outcome(
                .message(.refused(failure)), leave(plan, hasFolder: true, "its files couldn't be made: \(failure)"))
        }
        if now >= commit.start {
            let late = (now - commit.start).milliseconds
            let words = "its files were made \(late) ms after T0; the disk is too slow"
            return Outcome(
                .message(.refused(Refusal(.tooLate, "host \(host): \(name(take)) is late: \(words)"))),
                leave(plan, hasFolder: true, words))
        }
        phase = .committed(plan, commit, report: report, isPrepared: true)
        return Outcome(.message(.committed(TakeReference(take: take))))
    }

    mutating func abort(_ reference: TakeReference, at now: Timestamp<HostTime>) -> Outcome {
        let answer = Answer.message(.aborted(TakeReference(take: reference.take, reason: reference.reason)))
        let words = "it was aborted" + (reference.reason.isEmpty ? "" : " (\(reference.reason.prefix(200)))")
        switch phase {
        case .arming(let plan) where plan.take == reference.take,
            .armed(let plan, _, _) where plan.take == reference.take:
            return Outcome(answer, leave(plan, hasFolder: false, words))
        case .committed(let plan, _, _, _) where plan.take == reference.take:
            return Outcome(answer, leave(plan, hasFolder: true, words))
        case .recording(let plan, let commit, _) where plan.take == reference.take:
            if now - commit.start <= Self.startWindow {
                return Outcome(answer, leave(plan, hasFolder: true, words))
            }
            // What has been recorded for longer is never thrown away.
            return Outcome(answer, endSoon("aborted", at: now))
        case .stopping(let plan, _, _) where plan.take == reference.take,
            .finished(let plan, _, _) where plan.take == reference.take:
            return .refuse(
                .invalidTransition,
                "host \(host): \(name(plan.take)) is \(stateWord) and its episode \(plan.episode) is kept; nothing is to "
                    + "be aborted")
        case .none, .finished:
            // Also for a take that never reached this host: should its 'arm' come late, it is refused.
            remember(reference.take, self.words(of: reference.take) ?? words)
            return Outcome(answer)
        default: return unknown(reference.take, doing: .abort)
        }
    }

    mutating func chirp(_ command: ChirpCommand) -> Outcome {
        guard let plan, plan.take == command.take else { return unknown(command.take, doing: .chirp) }
        if chirps.contains(command.moment) { return Outcome(.whenChirped(command.moment)) }
        switch phase {
        case .recording, .committed(_, _, _, isPrepared: true):
            guard plan.chirp != .off else {
                return Outcome(
                    .message(
                        .chirped(
                            ChirpReport(
                                take: plan.take, moment: command.moment, emitted: nil, source: .silent,
                                error: "the take has no chirps"))))
            }
            chirps.insert(command.moment)
            return Outcome(.whenChirped(command.moment), [.play(command.moment, at: command.at)])
        default:
            return .refuse(
                .invalidTransition,
                "host \(host): no chirp can be played, since \(name(plan.take)) is \(stateWord); it needs a running take"
            )
        }
    }

    mutating func stop(_ command: StopCommand, at now: Timestamp<HostTime>) -> Outcome {
        let reason = command.reason.isEmpty ? "stop" : String(command.reason.prefix(200))
        let answer = Answer.message(.stopping(TakeReference(take: command.take, reason: reason)))
        guard let plan, plan.take == command.take else { return unknown(command.take, doing: .stop) }
        switch phase {
        case .recording(_, let commit, _):
            // What is past can't be stopped; the take then ends as soon as can be.
            let at = min(max(command.stop, now + Self.stopLead), commit.start + Self.longestTake)
            end = End(at: at, reason: reason)
            return Outcome(answer, [.closeGate(at: at)])
        case .committed(_, let commit, _, _) where command.stop > commit.start:
            let at = min(command.stop, commit.start + Self.longestTake)
            end = End(at: at, reason: reason)
            return Outcome(answer, [.closeGate(at: at)])
        case .stopping, .finished: return Outcome(answer)
        default:
            return .refuse(
                .invalidTransition,
                "host \(host): \(name(plan.take)) is \(stateWord) and can't be stopped yet; abort it instead")
        }
    }

    mutating func halt(_ reason: String, at now: Timestamp<HostTime>) -> Outcome {
        switch phase {
        case .recording:
            return Outcome(.none, endSoon(reason, at: now))
        case .arming(let plan), .armed(let plan, _, _):
            return Outcome(.none, leave(plan, hasFolder: false, "it was ended by '\(reason)'"))
        case .committed(let plan, _, _, _):
            return Outcome(.none, leave(plan, hasFolder: true, "it was ended by '\(reason)'"))
        case .none, .stopping, .finished: return Outcome(.none)
        }
    }

    private mutating func endSoon(_ reason: String, at now: Timestamp<HostTime>) -> [Action] {
        let at = min(end?.at ?? .init(nanoseconds: .max), now + Self.stopLead)
        end = End(at: at, reason: reason)
        return [.closeGate(at: at)]
    }

    mutating func finished(_ report: StopReport) -> Outcome {
        guard case .stopping(let plan, let commit, _) = phase, plan.take == report.take else { return Outcome(.none) }
        phase = .finished(plan, commit, report)
        return Outcome(.none)
    }
}
