internal import Devices
internal import Platform
internal import Protocol
internal import Timing

/// Opening the devices for a take, all at once, and letting go of them.
extension CaptureAgent {
    private static let stopPatience = Interval.seconds(5)
    private static let listPatience = Interval.seconds(10)

    // MARK: Arming

    /// Opens and starts every stream; answers who waits for `arm`.
    func openDevices(_ plan: TakePlan) async {
        let result: Result<ArmReport, Refusal>
        do { result = .success(try await arm(plan)) } catch let refusal as Refusal {
            result = .failure(refusal)
        } catch {
            result = .failure(Refusal(.internalError, "host \(host): \(error)"))
        }
        handle(.opened(take: plan.take, result))
        switch result {
        case .success(let report):
            answerArm(.armed(report))
            guard case .armed = machine.phase else { return }
            tell(
                "armed for \(plan.episode): \(report.streams.filter { $0.error == nil }.count) of \(slots.count) streams"
            )
        case .failure(let refusal):
            answerArm(.refused(refusal))
            tell("not armed: \(refusal.message)")
            if session.state == .connected { transition(.disconnect) }
            await closeDevices()
        }
    }

    func answerArm(_ message: Message) {
        let waiters = armWaiters
        armWaiters = []
        for waiter in waiters { waiter.resume(returning: message) }
    }

    private func arm(_ plan: TakePlan) async throws -> ArmReport {
        settle()
        if session.state == .idle { transition(.connect) }
        try checkDisk(plan)
        for slot in slots {
            slot.clear()
            slot.recorder.ring.reset()
        }
        let limit = min(max(plan.startTimeout, .milliseconds(100)), .seconds(120))
        await openAll(limit: limit)
        await openSpeaker(plan, limit: limit)

        let failed = slots.filter { $0.error != nil }
        let cause = failed.compactMap(\.error).joined(separator: "; ")
        if failed.count == slots.count || (plan.policy == .strict && !failed.isEmpty) {
            // SyncField stops every stream, also one that seems not to have started.
            let started = slots.filter { $0.stage == .running }.map(\.stream)
            let outcomes = slots.map(\.outcome)
            await stopDelivery()
            throw Refusal(
                .deviceFailed, "host \(host): \(SessionError.startFailed(cause: cause, rolledBack: started))",
                streams: outcomes)
        }
        for slot in failed { publish(.streamFailed, take: plan.take, stream: slot.stream, slot.error ?? "") }
        return ArmReport(
            take: plan.take, streams: slots.map(\.outcome), freeBytes: freeBytes,
            bytesPerSecond: slots.filter { $0.error == nil }.reduce(0) {
                $0 + ($1.description.map(StreamCost.estimate) ?? 0)
            },
            canPlayChirps: speakerRate != nil
                || (plan.role == .follower && plan.playsTurn != true && configuration.speaker != nil))
    }

    private func checkDisk(_ plan: TakePlan) throws {
        freeBytes = try Files.freeSpace(at: home.episodes)
        let reserve = reserveBytes(plan)
        guard freeBytes > reserve else {
            throw Refusal(
                .diskFull,
                "host \(host): \(freeBytes / 1_000_000) MB are free at \(home.episodes), and \(reserve / 1_000_000) MB are "
                    + "kept in reserve; make room, or lower the reserve")
        }
    }

    func reserveBytes(_ plan: TakePlan) -> Int64 { max(plan.reserveBytes, configuration.reserveBytes) }

    private func openAll(limit: Interval) async {
        let loop = loop
        await withTaskGroup(of: (Int, StreamDescription?, String?).self) { group in
            for (index, slot) in slots.enumerated() where slot.stage != .running {
                if slot.stuck.value {
                    slot.error =
                        "\(slot.stream): its driver hangs since an earlier call; unplug the device and plug it in again"
                    continue
                }
                let (device, ring, stuck) = (slot.device, slot.recorder.ring, slot.stuck)
                let isOpen = slot.stage == .open ? slot.description : nil
                if isOpen == nil { slot.stage = .opening }
                group.addTask {
                    do {
                        let description = try await Self.start(
                            device, ring, known: isOpen, stuck: stuck, limit: limit, loop: loop)
                        return (index, description, nil)
                    } catch {
                        return (index, nil, Self.words(error, device.stream, limit))
                    }
                }
            }
            for await (index, description, error) in group {
                let slot = slots[index]
                slot.error = error
                slot.stage = error == nil ? .running : .closed
                slot.description = description ?? slot.description
                slot.meter = RateMeter()
                // A camera that records by itself delivers nothing to wait for.
                slot.stall =
                    slot.camera == nil ? StallWatch(rate: slot.description?.nominalRate, start: HostClock.now) : nil
            }
        }
    }

    /// Opens a device, unless it is open, and starts it into its ring.
    private static func start(
        _ device: any CaptureDevice, _ ring: SampleRing, known: StreamDescription?, stuck: StreamSlot.Stuck,
        limit: Interval, loop: EventLoop
    ) async throws -> StreamDescription {
        // Set until the driver comes back: a device that hangs is not touched again.
        stuck.value = true
        do {
            let description = try await Patience.within(
                limit, on: loop,
                {
                    if let known {
                        do {
                            try await device.start(ring)
                            return known
                        } catch {
                            // It may have been unplugged and plugged in again since the last take.
                            await device.close()
                        }
                    }
                    let description = try await device.open()
                    do { try await device.start(ring) } catch {
                        await device.close()
                        throw error
                    }
                    return description
                },
                ifLate: { result in
                    if case .success = result { await device.stop() }
                    await device.close()
                    stuck.value = false
                })
            stuck.value = false
            return description
        } catch let error as Patience.TimedOut {
            throw error
        } catch {
            stuck.value = false
            throw error
        }
    }

    private static func words(_ error: any Error, _ stream: StreamID, _ limit: Interval) -> String {
        switch error {
        case is Patience.TimedOut:
            "\(stream): its device did not start within \(limit.seconds) s; see whether another program holds it"
        case let error as DeviceError: error.description
        default: "\(stream): \(error)"
        }
    }

    private func openSpeaker(_ plan: TakePlan, limit: Interval) async {
        let plays = plan.chirp != .off && (plan.role == .leader || plan.playsTurn == true)
        let isNeeded = plays || (plan.role == .leader && (plan.countdown ?? 0) > 0)
        guard let speaker = configuration.speaker, isNeeded, speakerRate == nil else { return }
        do {
            speakerRate = try await Patience.within(
                limit, on: loop, { try await speaker.open() },
                ifLate: { result in if case .success = result { await speaker.close() } })
            speakerError = nil
        } catch {
            speakerError = "\(error)"
            publish(.warning, take: plan.take, "the speaker can't be used: \(error)")
        }
    }

    // MARK: Letting go

    /// Ends the delivery of all devices; they stay open.
    func stopDelivery() async {
        await withTaskGroup(of: Void.self) { group in
            for slot in slots where slot.stage == .running {
                slot.stage = .open
                let (device, stuck) = (slot.device, slot.stuck)
                group.addTask { [loop] in await Self.stop(device, stuck, loop: loop) }
            }
        }
    }

    /// Waits for a device to end its delivery, but not for ever.
    static func stop(_ device: any CaptureDevice, _ stuck: StreamSlot.Stuck, loop: EventLoop) async {
        stuck.value = true
        do {
            try await Patience.within(
                Self.stopPatience, on: loop, { await device.stop() }, ifLate: { _ in stuck.value = false })
            stuck.value = false
        } catch {
            log.error("stream '\(device.stream)': its device did not stop within \(stopPatience.seconds) s")
        }
    }

    func closeDevices() async {
        await stopDelivery()
        for slot in slots where slot.stage != .closed {
            slot.stage = .closed
            if !slot.stuck.value { await slot.device.close() }
        }
        if speakerRate != nil {
            speakerRate = nil
            await configuration.speaker?.close()
        }
    }

    /// An armed take ends before it began, or right after.
    func disarm(_ plan: TakePlan, hasFolder: Bool, reason: String) {
        let refusal = Message.refused(
            Refusal(.unknownTake, "host \(host): take \(plan.take.rawValue.prefix(8)): \(reason)"))
        answerArm(refusal)
        answerCommit(refusal)
        for task in playing { task.cancel() }
        if session.state == .recording { session.startFailed() }
        publish(.disarmed, take: plan.take, reason)
        tell("disarmed (\(plan.episode)): \(reason)")
        enqueue { await self.undo(plan, hasFolder: hasFolder) }
    }

    private func undo(_ plan: TakePlan, hasFolder: Bool) async {
        for slot in slots { await abandonClip(slot) }
        await stopDelivery()
        for slot in slots {
            await slot.recorder.discard()
            if slot.error != nil, slot.stage == .open, !slot.stuck.value {
                // A device that broke has to be opened anew.
                slot.stage = .closed
                await slot.device.close()
            }
            slot.clear()
        }
        guard hasFolder else { return }
        await scribe.discard()
        do { try await store.remove(plan.take) } catch { Self.log.error("\(error)") }
    }

    // MARK: What is there

    /// What is attached, and what the configuration makes of it; devices that aren't in use are opened for it.
    func deviceList() async throws -> DeviceList {
        let finder = EventLoop(name: "attached")
        let attached = try await finder.run { DeviceCatalog.kinds.flatMap { $0.attached() } }
        await enqueue { await self.describe() }.value
        return DeviceList(attached: attached, streams: slots.map(\.outcome))
    }

    private func describe() async {
        guard session.state == .idle, !machine.isBusy else { return }
        let limit = Self.listPatience
        for slot in slots where slot.stage == .closed && !slot.stuck.value {
            let (device, stuck) = (slot.device, slot.stuck)
            stuck.value = true
            do {
                slot.description = try await Patience.within(
                    limit, on: loop,
                    {
                        let description = try await device.open()
                        await device.close()
                        return description
                    }, ifLate: { _ in stuck.value = false })
                slot.error = nil
                stuck.value = false
            } catch {
                slot.error = Self.words(error, slot.stream, limit)
                if !(error is Patience.TimedOut) { stuck.value = false }
            }
        }
    }
}
