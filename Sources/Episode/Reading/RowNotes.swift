internal import Protocol

/// Says in sentences what is odd about a stream's rows; pure.
enum RowNotes {
    static func sentences(_ report: RowReport, stream: StreamRecord) -> [EpisodeNote] {
        var notes: [EpisodeNote] = []
        func add(_ when: Bool, _ weight: EpisodeNote.Weight, _ text: @autoclosure () -> String) {
            if when { notes.append(EpisodeNote(weight, text())) }
        }
        let name = stream.stamps ?? "its time stamp file"
        add(report.rows == 0, .warning, "\(name) has no rows")
        add(
            report.hasOldKeys, .warning,
            "\(name) has the keys frame and timestamp_ns of SyncField Swift up to 0.4; a sync server refuses them, so "
                + "they are renamed where the files are merged")
        add(report.isTorn, .warning, "the last line of \(name) is torn; it is left out")
        add(
            report.malformed > 0, .warning,
            "\(report.malformed) lines of \(name) are no rows, the first is \(report.firstMalformed ?? "")")
        add(report.hasByteOrderMark, .information, "\(name) begins with a byte order mark")
        add(report.hasCarriageReturns, .information, "\(name) has lines that end with a carriage return")
        add(
            report.disordered > 0, .information,
            "\(report.disordered) rows of \(name) are out of order; they are sorted")
        add(
            report.isUnsorted, .warning,
            "\(name) is out of order and has too many rows to be sorted: its gaps are those of the lines as they stand")
        add(report.duplicates > 0, .warning, "\(report.duplicates) rows of \(name) repeat a frame number")
        add(
            report.previewRows > 0, .information,
            "\(report.previewRows) rows of \(name) are from before the recording (frame_number -1); they are left out")
        add(report.inexactStamps > 0, .warning, "\(report.inexactStamps) stamps of \(name) aren't whole nanoseconds")
        add(
            report.clockDomains.count > 1, .warning,
            "\(name) has \(report.clockDomains.count) clock domains: \(report.clockDomains.joined(separator: ", "))")
        add(
            stream.kind != .audio && report.missingFrames > 0, .warning,
            "\(report.missingFrames) frame numbers are left out in \(name)")
        if let declared = stream.declaredFrames, stream.kind != .audio {
            add(
                declared != report.rows, .warning,
                "the manifest has \(declared) frames and \(name) \(report.rows) rows; the rows are taken")
        }
        return notes
    }
}
