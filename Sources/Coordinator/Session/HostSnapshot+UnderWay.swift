package import Protocol

extension HostSnapshot {
    /// The take that this host records, closes, or has promised to begin; nil when nothing is under way.
    ///
    /// A host that is merely armed has promised nothing: it lets go by itself. One that is committed begins at T0 whoever
    /// has died meanwhile, although its state is `connected` until then. A take that is over keeps its commit in the
    /// snapshot, and is told by its episode's progress.
    package var takeUnderWay: UniqueID? {
        guard let take = status.take else { return nil }
        if let progress = episodes.first(where: { $0.take == take })?.progress, progress != .recording { return nil }
        return status.state == .recording || status.state == .stopping || commit != nil ? take : nil
    }
}
