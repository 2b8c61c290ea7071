internal import Acoustics
internal import Devices
internal import Episode
internal import Platform
internal import Protocol
internal import Timing

/// From the commit to the closed files.
extension CaptureAgent {
    // MARK: Commit

    /// Makes the folder and the files, so that T0 has nothing to do but to come.
    func prepare(_ plan: TakePlan, _ commit: Commit) async {
        (chirpReports, playing, droppedUntold) = ([:], [], [:])
        (hasToldStreaming, hasAnchor, isDiskLow) = (false, false, false)
        var failure: Refusal?
        do {
            let folder = home.episode(plan.episode)
            try await scribe.make(folder)
            try await store.save(TakeRecord(plan: plan, commit: commit, progress: .committed))
            gate.arm(at: commit.start)
            let stop = machine.end?.at ?? commit.limit
            let inTake = slots.filter { $0.stage == .running && $0.error == nil && $0.description != nil }
            let recorded = inTake.filter { $0.camera == nil }.compactMap(\.description)
            let sound = SoundChoice.Pair(configuration.sound, among: recorded)
            for note in sound.notes { publish(.warning, take: plan.take, note) }
            var place = WriterPlace(folder: folder, clockDomain: host.rawValue, longest: stop - commit.start)
            place.encoding = configuration.encoding
            for slot in inTake {
                guard let description = slot.description else { continue }
                slot.isInTake = true
                guard slot.camera == nil else { continue }
                place.sound = sound.involves(slot.stream) ? sound.feed : nil
                try await slot.recorder.prepare(description, place, start: commit.start, stop: stop)
            }
        } catch let error as SystemError where error.errno == .exists {
            failure = Refusal(
                .invalidTransition, "host \(host): there is an episode \(plan.episode) already; plan a new take")
            // It isn't ours: what is there must not be removed.
        } catch {
            failure = Refusal(.diskFull, "host \(host): the files of \(plan.episode) can't be made: \(error)")
        }
        guard case .message(let message) = handle(.prepared(take: plan.take, failure: failure)) else { return }
        answerCommit(message)
        if case .committed = message {
            startClips(plan)
            countDown(plan, to: commit.start)
            tell("\(plan.episode) begins in \(((commit.start - HostClock.now).milliseconds / 10).rounded() / 100) s")
        }
    }

    func answerCommit(_ message: Message) {
        let waiters = commitWaiters
        commitWaiters = []
        for waiter in waiters { waiter.resume(returning: message) }
    }

    // MARK: T0

    /// The gates have opened by themselves; this writes down that they did.
    func begin(_ plan: TakePlan, _ commit: Commit) {
        transition(.startRecording)
        tell("recording \(plan.episode)")
        let inTake = slots.filter(\.isInTake)
        let streams = inTake.compactMap(\.description)
        let errors = slots.filter { !$0.isInTake }.map { $0.error ?? "\($0.stream): not in the take" }
        enqueue { [scribe, store, gate] in
            do {
                let opened = await gate.wait(for: commit.start)
                try await scribe.begin(
                    plan, commit, opened: opened, isRealtime: gate.hasRealtimePriority, streams: streams, errors: errors
                )
                try await store.update(plan.take) { $0.progress = .recording }
            } catch {
                await self.writingFailed(error)
            }
            await self.anchored()
        }
    }

    private func anchored() {
        hasAnchor = true
        checkStreaming()
    }

    /// A file that isn't a stream's can't be written.
    private func writingFailed(_ error: any Error) {
        Self.log.error("\(error)")
        publish(.warning, "host \(host): \(error)")
        if (error as? SystemError)?.errno == .noSpace { handle(.halt(reason: "disk")) }
    }

    // MARK: Chirps

    func play(_ moment: ChirpMoment, at instant: Timestamp<HostTime>) {
        guard let plan = machine.plan else { return }
        // Unstructured: the sound goes on when its request is given up.
        playing.append(Task { await self.playing(moment, at: instant, plan) })
    }

    private func playing(_ moment: ChirpMoment, at instant: Timestamp<HostTime>, _ plan: TakePlan) async {
        let start = plan.startSpec
        let spec = moment == .stop ? start?.reversed : start
        var report = ChirpReport(take: plan.take, moment: moment, emitted: nil, source: .silent)
        do {
            guard let speaker = configuration.speaker, let rate = speakerRate, let start else {
                throw SessionError.deviceUnsupported(
                    reason: "host \(host) has no speaker to play with" + (speakerError.map { ": \($0)" } ?? ""))
            }
            let emission = try await speaker.play(Chirp.samples(moment, of: start, rate: rate), at: instant)
            (report.emitted, report.source) = (emission.instant, emission.source)
        } catch {
            report.error = "\(error)"
            publish(.warning, take: plan.take, "the \(moment.rawValue) chirp was not played: \(error)")
        }
        guard machine.plan?.take == plan.take else { return }
        chirpReports[moment] = report
        let waiters = chirpWaiters.removeValue(forKey: moment) ?? []
        for waiter in waiters { waiter.resume(returning: .chirped(report)) }
        if report.error == nil { tell("played the \(moment.rawValue) chirp") }
        let finished = report
        await enqueue { [scribe, store] in
            do {
                try await scribe.note(finished, spec: spec)
                try await store.update(plan.take) { $0.chirps.append(finished) }
            } catch {
                await self.writingFailed(error)
            }
        }.value
    }

    // MARK: T1

    /// The gates have closed; ends the devices and closes the files, whatever becomes of each.
    func end(_ plan: TakePlan, _ commit: Commit, at stop: Timestamp<HostTime>, reason: String) {
        transition(.stopRecording)
        // A stop chirp that still sounds is waited for; it writes into the anchor.
        let playing = playing
        let limit = HostClock.now + .seconds(3)
        let watchdog = loop.schedule(at: limit) { for task in playing { task.cancel() } }
        // Unstructured: it waits for the sound outside of the chain, in which the sound's own notes must come first.
        Task {
            for task in playing { await task.value }
            loop.cancel(watchdog)
            self.enqueue { await self.finish(plan, commit, at: stop, reason: reason) }
        }
    }

    private func finish(_ plan: TakePlan, _ commit: Commit, at stop: Timestamp<HostTime>, reason: String) async {
        do { try await scribe.stopping() } catch { writingFailed(error) }
        var entries = await closeStreams(home.episode(plan.episode))
        var errors = slots.filter { !$0.isInTake }.compactMap(\.error)
        for slot in slots where !slot.isInTake { entries.append(Self.absent(slot)) }
        for entry in entries { errors += entry.errors.prefix(3).map { "\(entry.id): \($0)" } }
        if let error = chirpReports.values.compactMap(\.error).first { errors.append("chirp: \(error)") }
        var bytes: Int64 = 0
        do {
            bytes = try await scribe.finish(streams: entries, stop: stop, reason: reason, errors: errors)
        } catch {
            errors.append("\(error)")
            writingFailed(error)
        }
        let order = Dictionary(uniqueKeysWithValues: slots.enumerated().map { ($1.stream, $0) })
        let report = StopReport(
            take: plan.take, episode: plan.episode,
            streams: entries.sorted { order[$0.id] ?? 0 < order[$1.id] ?? 0 }.map { StreamStatus($0, hasEnded: true) },
            reason: reason, errors: errors)
        let written = bytes
        do {
            try await store.update(plan.take) { record in
                (record.progress, record.report, record.bytes) = (.finished, report, written)
            }
        } catch {
            writingFailed(error)
        }
        handle(.finished(report))
        publish(.takeFinished, take: plan.take, reason, stop: report)
        let words = errors.isEmpty ? "" : "; \(errors.joined(separator: "; "))"
        tell("finished \(plan.episode) (\(reason)): \(written / 1000) kB\(words)")
        for waiter in finishWaiters { waiter.resume() }
        finishWaiters = []
        // A take that ended while nobody commanded this host.
        if lease.holder(at: HostClock.now) == nil { rest() }
    }

    private func closeStreams(_ folder: String) async -> [ManifestStream] {
        let loop = loop
        // Unstructured, since a slot is this actor's own: the cameras are stopped while the files are closed.
        let cameras = slots.filter { $0.isInTake && $0.camera != nil }.map(\.stream).map { stream in
            Task { await self.endClip(stream, folder) }
        }
        // All the sound must be there before the video is closed that it is heard in.
        await withTaskGroup(of: Void.self) { group in
            for slot in slots where slot.isInTake && slot.camera == nil {
                let (recorder, device, stuck) = (slot.recorder, slot.device, slot.stuck)
                group.addTask {
                    await recorder.awaitGate()
                    await Self.stop(device, stuck, loop: loop)
                    await recorder.settle()
                }
            }
        }
        var all = await withTaskGroup(of: (Int, ManifestStream?).self) { group in
            for (index, slot) in slots.enumerated() where slot.isInTake && slot.camera == nil {
                let recorder = slot.recorder
                group.addTask { (index, await recorder.finish()) }
            }
            var entries: [ManifestStream] = []
            for await (index, entry) in group {
                let slot = slots[index]
                slot.stage = .open
                slot.hasStopped = true
                // A device that broke has to be opened anew for the next take.
                if slot.error != nil, !slot.stuck.value {
                    slot.stage = .closed
                    await slot.device.close()
                }
                if let entry { entries.append(entry) }
            }
            return entries
        }
        for camera in cameras { if let entry = await camera.value { all.append(entry) } }
        return all
    }

    private func endClip(_ stream: StreamID, _ folder: String) async -> ManifestStream? {
        guard let slot = slots.first(where: { $0.stream == stream }) else { return nil }
        let entry = await endClip(slot, folder: folder)
        await Self.stop(slot.device, slot.stuck, loop: loop)
        slot.clipTask = nil
        (slot.stage, slot.hasStopped) = (.open, true)
        if slot.error != nil, !slot.stuck.value {
            slot.stage = .closed
            await slot.device.close()
        }
        return entry
    }

    /// A configured stream that had no part in the take.
    private static func absent(_ slot: StreamSlot) -> ManifestStream {
        var entry = ManifestStream(slot.placeholder, status: .failed)
        entry.errors = [slot.error ?? "not in the take"]
        return entry
    }
}
