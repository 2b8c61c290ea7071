package import Devices
internal import Episode
internal import Platform
package import Protocol
package import Timing

/// Brings the clips of cameras that record by themselves into their episodes, before these are handed over.
///
/// Each camera's ways are tried in the configured order; a camera that fails costs nobody else a clip. One ingest runs at a
/// time, one camera holds the Wi-Fi at a time, and the others are kept awake meanwhile.
///
/// Concurrency: an actor on an event loop of its own, which blocks on disks, downloads and nmcli.
package actor ClipIngest {
    /// What came of it, a sentence each.
    package struct Report: Sendable, Hashable {
        package var placed: [String] = []
        package var failed: [String] = []
    }

    private static let log = Log("clips")

    private let home: AgentHome
    private let network: CameraNetwork
    private let reserve: Int64
    /// How long a file that isn't listed yet is waited for: a camera closes it some seconds after the stop.
    private let patience: Interval
    private let tell: @Sendable (String) -> Void
    private let loop = EventLoop(name: "clips")
    private var tail: Task<Void, Never>?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(
        home: AgentHome, reserve: Int64, tool: any NetworkTool = NetworkManager(), patience: Interval = .seconds(12),
        tell: @escaping @Sendable (String) -> Void
    ) {
        (self.home, self.reserve, self.patience, self.tell) = (home, reserve, patience, tell)
        network = CameraNetwork(tool: tool, path: "\(home.path)/wifi.json")
    }

    /// Puts back a network that a program that died had left.
    package func restoreNetwork() {
        guard network.isAway else { return }
        do {
            try network.restore()
            tell("this host was still in a camera's network; its own is back")
        } catch {
            Self.log.error("\(error)")
            tell("\(error)")
        }
    }

    /// Brings what waits in an episode.
    ///
    /// `cameras` are those of the configuration, by stream.
    package func bring(_ episode: EpisodeID, cameras: [StreamID: any ClipCamera]) async -> Report {
        let before = tail
        let task = Task {
            await before?.value
            return await self.bringNow(episode, cameras)
        }
        tail = Task { _ = await task.value }
        return await task.value
    }

    /// Streams of which a clip waits anywhere, and whose end was never written down.
    package func strays() -> Set<String> {
        let episodes = (try? Files.list(home.episodes)) ?? []
        let clips = episodes.flatMap { (try? PendingClip.all(in: "\(home.episodes)/\($0)").clips) ?? [] }
        return Set(clips.filter(\.isTentative).map(\.stream))
    }

    // MARK: One episode

    private struct Group {
        let camera: String
        var items: [ClipIntake.Item]
        var access: ClipAccess
        var device: (any ClipCamera)?
        var name: String { items.first { !$0.clip.cameraName.isEmpty }?.clip.cameraName ?? "" }
    }

    private func bringNow(_ episode: EpisodeID, _ cameras: [StreamID: any ClipCamera]) async -> Report {
        var report = Report()
        let folder = home.episode(episode)
        let pending: (clips: [PendingClip], problems: [String])
        do { pending = try PendingClip.all(in: folder) } catch {
            report.failed.append("\(error)")
            return report
        }
        report.failed += pending.problems
        guard !pending.clips.isEmpty else { return report }
        let clips = await endStrays(pending.clips, folder, cameras)
        let groups = self.groups(clips, folder, cameras)
        for group in groups where groups.count > 1 { await group.device?.keepAwake() }
        for group in groups { await bring(group, beside: groups, &report) }
        do { try network.restore() } catch { report.failed.append("\(error)") }
        for sentence in report.placed { tell("\(episode): \(sentence)") }
        for sentence in report.failed {
            Self.log.warning("\(episode): \(sentence)")
            tell("\(episode): \(sentence)")
        }
        return report
    }

    /// A camera may still record the take in which the program died: it is stopped first, or there is no file to fetch.
    private func endStrays(
        _ clips: [PendingClip], _ folder: String, _ cameras: [StreamID: any ClipCamera]
    ) async -> [PendingClip] {
        var clips = clips
        for index in clips.indices where clips[index].isTentative {
            let device = StreamID(rawValue: clips[index].stream).flatMap { cameras[$0] }
            guard let stop = await device?.endStrayClip() else { continue }
            tell("\(clips[index].stream): the camera still recorded, and was stopped")
            clips[index].cameraPath = stop.path
            (clips[index].stoppedWall, clips[index].savedAt) = (stop.wall, HostClock.wall)
            clips[index].expectedSegments = ClipChooser.segments(clips[index])
            clips[index].isTentative = false
            do { try clips[index].write(to: folder) } catch { Self.log.error("\(error)") }
        }
        return clips
    }

    /// A camera without an identity is one of its own.
    private func groups(_ clips: [PendingClip], _ folder: String, _ cameras: [StreamID: any ClipCamera]) -> [Group] {
        var groups: [Group] = []
        for clip in clips {
            let key = clip.cameraID.isEmpty ? "stream:\(clip.stream)" : clip.cameraID
            let item = ClipIntake.Item(folder: folder, clip: clip)
            if let index = groups.firstIndex(where: { $0.camera == key }) {
                groups[index].items.append(item)
                continue
            }
            let device = StreamID(rawValue: clip.stream).flatMap { cameras[$0] }
            groups.append(Group(camera: key, items: [item], access: device?.clips ?? ClipAccess(), device: device))
        }
        // What a camera named itself comes before what has to be guessed from times.
        func isNamed(_ group: Group) -> Bool { group.items.allSatisfy { $0.clip.cameraPath != nil } }
        return groups.filter(isNamed) + groups.filter { !isNamed($0) }
    }

    private func bring(_ group: Group, beside all: [Group], _ report: inout Report) async {
        var waiting = group.items
        var why: [String: String] = [:]
        for way in group.access.ways where !waiting.isEmpty {
            let outcomes: [String: ClipIntake.Outcome]
            do {
                switch way {
                case .usb: outcomes = try fromDisk(group, waiting)
                case .wifi:
                    await hold(group, all, .own, .other)
                    defer { do { try network.restore() } catch { report.failed.append("\(error)") } }
                    outcomes = try fromNetwork(group, waiting)
                }
            } catch {
                for item in waiting { why[item.id, default: ""] += "\(way.rawValue): \(error); " }
                if way == .wifi { await hold(group, all, .none, .none) }
                continue
            }
            if way == .wifi { await hold(group, all, .none, .none) }
            for item in waiting {
                switch outcomes[item.id] {
                case .placed(let files, let sources, let note)?:
                    remember(group.camera, sources)
                    report.placed.append(
                        "\(item.clip.stream): \(files.joined(separator: ", ")) came by \(way.rawValue)"
                            + (note.map { "; \($0)" } ?? ""))
                    waiting.removeAll { $0.id == item.id }
                case .failed(let reason)?: why[item.id, default: ""] += "\(way.rawValue): \(reason); "
                case nil: why[item.id, default: ""] += "\(way.rawValue): it wasn't found; "
                }
            }
        }
        for item in waiting {
            let words = (why[item.id].map { String($0.dropLast(2)) } ?? "no way is configured")
            report.failed.append("\(item.clip.stream): \(ClipPlacement.waiting): \(words)")
            do { try ClipPlacement.postpone(item.clip.stream, in: item.folder, why: words) } catch {
                Self.log.error("\(error)")
            }
        }
    }

    private func hold(
        _ group: Group, _ all: [Group], _ own: CameraLinkMachine.WiFi, _ others: CameraLinkMachine.WiFi
    ) async {
        for other in all { await other.device?.wifi(other.camera == group.camera ? own : others) }
    }

    // MARK: Ways

    private func fromDisk(_ group: Group, _ items: [ClipIntake.Item]) throws -> [String: ClipIntake.Outcome] {
        let cards = MassStorage.cards(beside: group.access.mounts).filter { card in
            // A card of which the serial number is known and another camera's isn't this one's.
            guard let serial = card.serial?.uppercased(), let suffix = suffix(group.name) else { return true }
            return serial.hasSuffix(suffix) || !serial.allSatisfy { $0.isLetter || $0.isNumber }
        }
        guard !cards.isEmpty else {
            throw EpisodeError(group.name, "no card of it is mounted", cure: "plug the camera in by its USB cable")
        }
        var outcomes: [String: ClipIntake.Outcome] = [:]
        var left = items
        for card in cards where !left.isEmpty {
            let files = try ClipFolder.list("\(card.folder)/DCIM")
            let found = place(left, group, files) { file, path in try ClipCopy.copy(file.path, to: path) }
            outcomes.merge(found) { _, new in new }
            left.removeAll { item in
                if case .placed = outcomes[item.id] { return true }
                return false
            }
        }
        return outcomes
    }

    /// The last six characters of the serial number, which a camera's name ends with.
    private func suffix(_ name: String) -> String? {
        guard let word = name.split(separator: " ").last, word.utf8.count == 6 else { return nil }
        return word.uppercased()
    }

    private func fromNetwork(_ group: Group, _ items: [ClipIntake.Item]) throws -> [String: ClipIntake.Outcome] {
        guard !group.name.isEmpty || group.access.network != nil else {
            throw EpisodeError(
                group.camera, "its name was never heard, and its network is called by it",
                cure: "set 'wifi_network' in the configuration")
        }
        let access = group.access
        let adapter = try network.join(
            access.network(ofCamera: group.name), password: access.password, interface: access.interface)
        let camera = CameraFiles(access: access, interface: adapter)
        let base = try camera.reach()
        var outcomes: [String: ClipIntake.Outcome] = [:]
        var left = items
        let deadline = HostClock.now + patience
        while true {
            let files = try camera.list(base)
            let found = place(left, group, files) { file, path in try camera.fetch(file, to: path, from: base) }
            outcomes.merge(found) { _, new in new }
            left.removeAll { item in
                if case .placed = outcomes[item.id] { return true }
                return false
            }
            guard !left.isEmpty, HostClock.now < deadline else { return outcomes }
            Pause.now(.seconds(2))
        }
    }

    private func place(
        _ items: [ClipIntake.Item], _ group: Group, _ files: [ClipChooser.File],
        bring: (ClipChooser.File, String) throws -> Void
    ) -> [String: ClipIntake.Outcome] {
        // Clips of other takes on the same camera have a say in which file is whose.
        let ids = Set(items.map(\.id))
        let others =
            group.camera.hasPrefix("stream:")
            ? [ClipIntake.Item]() : self.others(group.camera).filter { !ids.contains($0.id) }
        let zone = items.first?.clip.acknowledgedWall.map { HostClock.zone(at: $0) } ?? .zero
        // A camera without an identity may be any of the others.
        let isUnknown = group.camera.hasPrefix("stream:")
        let taken = claims.filter { isUnknown || $0.key == group.camera || $0.key.hasPrefix("stream:") }
        let intake = ClipIntake(zone: zone, taken: Set(taken.values.joined()))
        return intake.place(items + others, from: files, only: ids) { file, path in
            let free = try Files.freeSpace(at: home.episodes)
            guard free - file.size > reserve else {
                throw EpisodeError(
                    path, "\(free / 1_000_000) MB are free, and the clip has \(file.size / 1_000_000) MB",
                    cure: "make room; the clip stays on the camera")
            }
            try bring(file, path)
        }
    }

    private func others(_ camera: String) -> [ClipIntake.Item] {
        ((try? Files.list(home.episodes)) ?? []).flatMap { name -> [ClipIntake.Item] in
            let folder = "\(home.episodes)/\(name)"
            let clips = (try? PendingClip.all(in: folder).clips) ?? []
            return clips.filter { $0.cameraID == camera }.map { ClipIntake.Item(folder: folder, clip: $0) }
        }
    }

    // MARK: What was given away

    private var claimsPath: String { "\(home.path)/clips.json" }

    /// Names of files by camera; a camera's names have the time in them and don't come again.
    private var claims: [String: [String]] {
        guard let bytes = try? Files.read(claimsPath, limit: 16 << 20) else { return [:] }
        return (try? JSONText.decode([String: [String]].self, from: bytes)) ?? [:]
    }

    private func remember(_ camera: String, _ sources: [String]) {
        var all = claims
        all[camera, default: []] += sources.map { FilePath.name(of: $0) }
        all[camera] = all[camera]?.suffix(10_000)
        do { try AtomicFile.write(try JSONText.encodePretty(all), to: claimsPath) } catch {
            Self.log.error("\(error)")
        }
    }
}
