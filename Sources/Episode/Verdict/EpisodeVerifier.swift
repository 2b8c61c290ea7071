internal import Platform
package import Protocol

/// Checks a merged episode against what it says of itself: sizes, hashes, and as many rows as frames.
package enum EpisodeVerifier {
    package struct Report: Sendable, Hashable {
        /// Rows of a clock series that were computed anew, and the exchanges that they are from.
        package struct Clock: Sendable, Hashable {
            package var rows: Int
            package var exchanges: Int
        }

        /// What is wrong, a sentence each; empty when all is well.
        package var findings: [String] = []
        package var files = 0
        package var bytes: Int64 = 0
        /// Frames that libavformat counts, by the merged stream's id.
        package var containerFrames: [String: Int64] = [:]
        /// Nil when the episode has no exchanges.
        package var clock: Clock?

        package var isGood: Bool { findings.isEmpty }
    }

    /// Reads every byte of the episode.
    ///
    /// - Throws: `SystemError` or `EpisodeError` when there are no manifests to check against.
    package static func verify(folder: String) throws -> Report {
        let aggregated = try AggregatedManifest.read("\(folder)/aggregated_manifest.json")
        let merged = try MergedManifest.read("\(folder)/\(EpisodeLayout.manifest)")
        var report = Report()
        for host in aggregated.hosts { verify(host, folder: "\(folder)/hosts/\(host.id)", &report) }
        for stream in merged.streams { verify(stream, folder: folder, &report) }
        if let clock = try ClockSeriesMaker.check(folder: folder) {
            report.clock = Report.Clock(rows: clock.rows, exchanges: clock.exchanges)
            report.findings += clock.findings
        }
        return report
    }

    /// Checks files against what is said of them; used for the files of one host too.
    package static func verify(_ entry: FileEntry, folder: String) -> String? {
        guard FilePath.staysInside(entry.path) else { return "'\(entry.path)' isn't a path below the episode" }
        let path = "\(folder)/\(entry.path)"
        guard let size = Files.size(path) else { return "\(path) is missing" }
        guard size == entry.size else { return "\(path) has \(size) bytes, not \(entry.size)" }
        do {
            return try SHA256.ofFile(path) == entry.sha256.lowercased() ? nil : "\(path) has another content (sha256)"
        } catch {
            return "\(error)"
        }
    }

    private static func verify(_ host: AggregatedManifest.Host, folder: String, _ report: inout Report) {
        guard FilePath.staysInside(host.id), !host.id.contains("/") else {
            report.findings.append("'\(host.id)' is no name of a host")
            return
        }
        for entry in host.files {
            report.files += 1
            report.bytes += max(0, entry.size)
            if let finding = verify(entry, folder: folder) { report.findings.append(finding) }
        }
        let known = Set(host.files.map { Array($0.path.utf8) })
        for path in (try? EpisodeFiles.paths(folder)) ?? [] where !known.contains(Array(path.utf8)) {
            report.findings.append("\(folder)/\(path) is in no manifest")
        }
    }

    private static func verify(_ stream: MergedStream, folder: String, _ report: inout Report) {
        do {
            var rows: Int64?
            if let stamps = stream.timestampsPath {
                guard FilePath.staysInside(stamps) else {
                    return report.findings.append("'\(stamps)' isn't a path below it")
                }
                let found = try RowFile.read("\(folder)/\(stamps)")
                rows = found.rows
                if found.rows != stream.rows, found.isClean {
                    // The file may be an orderly copy without repeated rows; more than the source it never has.
                    if found.rows > stream.rows {
                        report.findings.append("\(stamps) has \(found.rows) rows and the manifest says \(stream.rows)")
                    }
                }
            }
            guard let media = stream.filePath else { return }
            guard FilePath.staysInside(media) else { return report.findings.append("'\(media)' isn't a path below it") }
            switch stream.kind {
            case .video:
                let probe = try ContainerProbe(path: "\(folder)/\(media)")
                report.containerFrames[stream.id] = probe.videoPackets
                if let rows, rows != probe.videoPackets {
                    report.findings.append(
                        "stream \(stream.id) has \(probe.videoPackets) frames in \(media) and \(rows) rows of stamps")
                }
                if probe.tornPackets > 0 { report.findings.append("\(media) has \(probe.tornPackets) torn frames") }
            case .audio:
                guard media.hasSuffix(".wav") else { return }
                let sound = try WAVFile(path: "\(folder)/\(media)")
                if sound.frames != stream.frameCount {
                    report.findings.append(
                        "stream \(stream.id) has \(sound.frames) sample frames and the manifest says \(stream.frameCount)"
                    )
                }
            case .sensor: break
            }
        } catch {
            report.findings.append("stream \(stream.id): \(error)")
        }
    }
}
