internal import Devices
internal import Episode
internal import Platform
internal import Protocol
internal import Timing

/// Cameras that record by themselves: told to start at the commit and to stop after T1; their clips come at ingest.
extension CaptureAgent {
    /// A file list is answered with what is there when clips take longer; they come all the same, for the next ingest.
    private static let clipPatience = Interval.seconds(570)

    var clipCameras: [StreamID: any ClipCamera] {
        Dictionary(
            uniqueKeysWithValues: slots.compactMap { slot in slot.camera.map { (slot.stream, $0) } })
    }

    // MARK: The take

    /// Begins the clips of a take that was committed; each goes on by itself, so that no camera holds up the answer.
    func startClips(_ plan: TakePlan) {
        let folder = home.episode(plan.episode)
        for slot in slots where slot.isInTake {
            guard let camera = slot.camera else { continue }
            let stream = slot.stream
            // Unstructured: it goes on when the request is answered, and is awaited at the end of the take.
            slot.clipTask = Task { await self.startClip(stream, camera, folder) }
        }
    }

    private func startClip(_ stream: StreamID, _ camera: any ClipCamera, _ folder: String) async -> PendingClip? {
        do {
            let start = try await camera.startClip()
            var clip = PendingClip(stream: stream.rawValue, cameraID: start.cameraID, cameraName: start.cameraName)
            clip.role = camera.clips.role
            (clip.acknowledged, clip.uncertainty, clip.acknowledgedWall) = (
                start.acknowledged, start.uncertainty, start.wall
            )
            let tentative = clip
            try await clipLoop.run { try tentative.writeTentative(to: folder) }
            guard let slot = slots.first(where: { $0.stream == stream }) else { return clip }
            slot.hasFirstSample = true
            let half = (start.uncertainty.milliseconds * 10).rounded() / 10
            tell("\(stream): the camera records (acknowledged ±\(half) ms)")
            checkStreaming()
            return clip
        } catch {
            clipFailed(stream, "\(error)")
            return nil
        }
    }

    private func clipFailed(_ stream: StreamID, _ text: String) {
        guard let slot = slots.first(where: { $0.stream == stream }) else { return }
        streamFailed(slot, text)
    }

    /// Ends a clip and writes down where it is.
    func endClip(_ slot: StreamSlot, folder: String) async -> ManifestStream {
        var entry = ManifestStream(slot.placeholder, status: .pending)
        entry.timestampsPath = nil
        entry.errors = slot.recorder.ring.take(atMost: 1_000).entries.compactMap { item in
            guard case .event(.note(let text)) = item else { return nil }
            return text
        }
        guard let camera = slot.camera, let begun = await slot.clipTask?.value else {
            // Whatever the reason: a camera that began all the same must not go on.
            if let camera = slot.camera, slot.clipTask != nil { _ = await camera.stopClip() }
            entry.status = .failed
            entry.errors.append(slot.error ?? "the camera never began")
            return entry
        }
        let stop = await camera.stopClip()
        var clip = begun
        clip.cameraPath = stop.path
        clip.stoppedWall = stop.wall
        clip.savedAt = HostClock.wall
        clip.stopFailure = stop.failure
        clip.expectedSegments = ClipChooser.segments(clip)
        (entry.acknowledgedStart, entry.acknowledgedUncertainty) = (clip.acknowledged, clip.uncertainty)
        entry.errors.append(ClipPlacement.waiting)
        if let failure = stop.failure { entry.errors.append("incomplete: \(failure)") }
        if stop.path == nil { entry.errors.append("the camera didn't say where its clip is; its time will tell") }
        let written = clip
        do { try await clipLoop.run { try written.write(to: folder) } } catch {
            // The tentative file is still there.
            entry.errors.append("\(error)")
        }
        return entry
    }

    /// A take that never came: the camera stops, and its clip stays on its card.
    func abandonClip(_ slot: StreamSlot) async {
        guard let camera = slot.camera, let task = slot.clipTask else { return }
        slot.clipTask = nil
        guard await task.value != nil else { return }
        let stop = await camera.stopClip()
        tell("\(slot.stream): the camera was stopped; \(stop.path ?? "a clip") of no take stays on its card")
    }

    // MARK: Ingest

    /// At the start of the program: the network is as it was, and cameras that may still record are known.
    func recoverClips() async {
        await clips.restoreNetwork()
        let strays = await clips.strays()
        for slot in slots where strays.contains(slot.stream.rawValue) { await slot.camera?.expectStrayClip() }
    }

    /// Fetches what waits on cameras before the list of files is made.
    func bringClips(_ record: TakeRecord) async {
        let (clips, cameras, episode) = (clips, clipCameras, record.plan.episode)
        let before = slots.filter { $0.camera != nil && $0.stage == .closed }.map(\.stream)
        do {
            let report = try await Patience.within(
                Self.clipPatience, on: loop, { await clips.bring(episode, cameras: cameras) }, ifLate: { _ in })
            guard !report.placed.isEmpty else { return }
            let bytes = TakeStore.bytes(in: home.episode(episode))
            try await store.update(record.plan.take) { $0.bytes = bytes }
        } catch {
            Self.log.warning("\(episode): the clips aren't here yet: \(error)")
        }
        for slot in slots where before.contains(slot.stream) && slot.stage == .closed { await slot.camera?.close() }
    }
}
